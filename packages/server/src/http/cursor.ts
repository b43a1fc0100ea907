/**
 * Position in a list as an opaque text. Bound to its filter, since with another one it would
 * silently skip rows.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { Problem } from "./problem.ts";
import { messageId } from "./schemas.ts";

const shape = z.strictObject({
  place: z.enum(["live", "archive"]),
  beforeId: messageId.optional(),
  filter: z.string(),
});

/** The next page starts in this place after this id; without an id at its beginning. */
export interface Position {
  readonly place: "live" | "archive";
  readonly beforeId: string | undefined;
}

export function encodeCursor(position: Position, filter: unknown): string {
  return Buffer.from(JSON.stringify({ ...position, filter: hashOf(filter) })).toString("base64url");
}

/** Throws a {@link Problem} for a text that is none, or is one of another filter. */
export function decodeCursor(text: string, filter: unknown): Position {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(text, "base64url").toString());
  } catch {
    value = undefined;
  }
  const parsed = shape.safeParse(value);
  const pointer = { errors: [{ pointer: "/cursor", message: "must be the `next` of an answer" }] };
  if (!parsed.success) throw new Problem("invalid-request", "the cursor is none of ours", { more: pointer });
  if (parsed.data.filter !== hashOf(filter))
    throw new Problem("invalid-request", "the cursor belongs to another filter: begin without it", { more: pointer });
  return { place: parsed.data.place, beforeId: parsed.data.beforeId };
}

function hashOf(filter: unknown): string {
  return createHash("sha256").update(JSON.stringify(filter)).digest("base64url").slice(0, 12);
}
