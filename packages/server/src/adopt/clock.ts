/** Whether a table's instants are UTC or the server's own time. */
import type { Catalog, Column } from "./catalog.ts";

export interface Clocks {
  readonly newest: string | undefined;
  readonly local: string;
  readonly utc: string;
}

/** Holds instants, whatever the zone of a session. */
function isInstant({ type }: Pick<Column, "type">): boolean {
  return /^timestamp(tz|\(\d\) with time zone| with time zone)/i.test(type);
}

/** With the reason; undefined: the rows do not tell. */
export function clockOf(
  { newest, local, utc }: Clocks,
  created: Pick<Column, "type">,
  { dialect }: Pick<Catalog, "dialect">,
): { readonly clock: "utc" | "server" | undefined; readonly why: string } {
  if (isInstant(created)) return { clock: "utc", why: "the column holds instants, whatever the zone" };
  // Its sessions have a zone each, and ours is UTC: what the writer's was stands nowhere.
  if (dialect === "postgres")
    return { clock: undefined, why: `${created.type} keeps no zone, and the writers' stands nowhere` };
  const [newestMs, localMs, utcMs] = [newest, local, utc].map((text) =>
    text === undefined ? Number.NaN : Date.parse(`${text.replace(" ", "T")}Z`),
  ) as [number, number, number];
  const minute = 60_000;
  if (Math.abs(localMs - utcMs) < minute) return { clock: "utc", why: "the server's own time is UTC" };
  if (Number.isNaN(newestMs)) return { clock: undefined, why: "the table has no rows" };
  const told = `the newest row is of ${newest}; it is ${local} by the server's own time, and ${utc} in UTC`;
  // Nothing was written in the future; and what is older than the time between both may be either.
  if (newestMs > utcMs + minute && newestMs <= localMs + minute) return { clock: "server", why: told };
  if (newestMs > localMs + minute && newestMs <= utcMs + minute) return { clock: "utc", why: told };
  return { clock: undefined, why: told };
}
