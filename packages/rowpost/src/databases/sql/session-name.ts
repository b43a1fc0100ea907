import type { SessionOptions } from "../database.ts";

/** What people see of a session in the server's list, behind `rowpost`. */
export function sessionName({ of, purpose }: Pick<SessionOptions, "of" | "purpose">): string {
  if (of === undefined) return purpose;
  return purpose === "lease" ? `${of} lease` : of;
}
