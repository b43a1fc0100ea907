/** Whether a table's instants are UTC or the server's own time. */
import type { Column } from "./catalog.ts";

export interface Clocks {
  readonly newest: string | undefined;
  readonly local: string;
  readonly utc: string;
}

/** With the reason; undefined: the rows do not tell. */
export function clockOf(
  { newest, local, utc }: Clocks,
  created: Pick<Column, "type">,
): { readonly clock: "utc" | "server" | undefined; readonly why: string } {
  if (/^timestamp(tz|\(\d\) with time zone| with time zone)/i.test(created.type))
    return { clock: "utc", why: "the column holds instants, whatever the zone" };
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
