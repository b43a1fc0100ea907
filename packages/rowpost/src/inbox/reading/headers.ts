/** Reads the identity from a message's headers in any form. */
import { HEADER_ATTEMPT, HEADER_KEY, HEADER_TYPE } from "../../message/message.ts";
import { RowpostError } from "../../runtime/errors.ts";
import type { ReceivedMessage } from "../identity.ts";

/**
 * A message carries no identity: rowpost did not publish it, or its headers were lost on the way.
 * Nothing was read or written.
 */
export class MissingIdentityError extends RowpostError {
  /** The missing headers. */
  readonly missing: readonly string[];

  constructor(from: string, missing: readonly string[]) {
    super(
      "MISSING_IDENTITY",
      `the message from ${from} has no ${missing.join(" and no ")}: was it published by rowpost? ` +
        "For one of another program say what makes it the same message each time: inbox.handle(on, { consumer, message: { type, key } }, …)",
    );
    this.missing = missing;
  }
}

/** Header values of clients: text, bytes, several per name, or nothing. */
export type HeaderValue = string | Uint8Array | readonly (string | Uint8Array)[] | null | undefined;

/** The value as text; of several the last one. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  return Array.isArray(value) ? textOf(value.at(-1)) : undefined;
}

/** Properties of a copy outside its headers. */
type Notes = Pick<ReceivedMessage, "id" | "topic">;

/** Throws {@link MissingIdentityError}. `from` names the message. */
export function identityIn(
  from: string,
  headers: Readonly<Record<string, unknown>>,
  { id, topic }: Notes = {},
): ReceivedMessage {
  const type = textOf(headers[HEADER_TYPE]) ?? "";
  const key = textOf(headers[HEADER_KEY]) ?? "";
  const missing = [...(type === "" ? [`header ${HEADER_TYPE}`] : []), ...(key === "" ? [`header ${HEADER_KEY}`] : [])];
  if (missing.length > 0) throw new MissingIdentityError(from, missing);
  const attempt = Number(textOf(headers[HEADER_ATTEMPT]));
  return {
    type,
    key,
    ...(id === undefined ? {} : { id }),
    ...(Number.isInteger(attempt) && attempt > 0 ? { attempt } : {}),
    ...(topic === undefined ? {} : { topic }),
  };
}

/**
 * The identity in plain headers with lower-case names, for a broker of your own. Throws {@link
 * MissingIdentityError}.
 */
export function fromHeaders(headers: Readonly<Record<string, HeaderValue>>): ReceivedMessage {
  return identityIn("these headers", headers);
}
