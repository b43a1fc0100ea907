import type { ClientFactory } from "../../brokers/redis/client.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { RowpostError } from "../../runtime/errors.ts";

type Words = readonly (string | number)[];

export interface Connection {
  connect(): Promise<unknown>;
  disconnect(): void;
  on(event: "error" | "end", listener: (error?: unknown) => void): unknown;
  xgroup(...words: Words): Promise<unknown>;
  xreadgroupBuffer(...words: Words): Promise<unknown>;
  xautoclaimBuffer(...words: Words): Promise<unknown>;
  xclaim(...words: Words): Promise<unknown>;
  xpending(...words: Words): Promise<unknown>;
  xack(...words: Words): Promise<unknown>;
  xdel(...words: Words): Promise<unknown>;
  eval(...words: Words): Promise<unknown>;
}

/** An entry of the client; in Redis 6.2 a trimmed entry has no fields. */
export type WireEntry = readonly [id: Buffer, fields: readonly Buffer[] | null];

export interface Membership {
  readonly group: string;
  readonly member: string;
}

const ANSWER_MS = 5_000;

/** Rejects if the server does not answer in time; `longerMs` extends it. */
export function answered<Result>(asking: Promise<Result>, longerMs = 0): Promise<Result> {
  return withDeadline(() => asking, { what: "a command of Redis", ms: ANSWER_MS + longerMs });
}

/**
 * Resolves when connected; `onEnd` is called once, with the reason. Rejects with the server's
 * error.
 */
export async function openConnection(make: ClientFactory, onEnd: (reason: unknown) => void): Promise<Connection> {
  const connection = (await make()) as unknown as Connection;
  let reason: unknown;
  // Without a listener ioredis prints errors. The first is the reason; later ones report the close.
  connection.on("error", (error) => {
    reason ??= error;
  });
  connection.on("end", () => onEnd(reason ?? new RowpostError("CONNECTION_LOST", "the connection to Redis ended")));
  try {
    await connection.connect();
  } catch (error) {
    connection.disconnect();
    throw reason ?? error;
  }
  return connection;
}

/** Creates missing streams and groups. Resolves to whether the group was missing. */
export async function ensureGroup(
  connection: Connection,
  stream: string,
  { group, from }: { readonly group: string; readonly from: "0" | "$" },
): Promise<boolean> {
  try {
    await connection.xgroup("CREATE", stream, group, from, "MKSTREAM");
    return true;
  } catch (error) {
    if (!String(error).includes("BUSYGROUP")) throw error;
    return false;
  }
}
