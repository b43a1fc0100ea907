import type { SessionOptions } from "../database.ts";

/** Name in the server's list of sessions, after `rowpost`. */
export function sessionName({ of, purpose }: Pick<SessionOptions, "of" | "purpose">): string {
  if (of === undefined) return purpose;
  return purpose === "lease" ? `${of} lease` : of;
}
