import type { Say } from "../language.ts";
import type { Catalog, Column } from "./catalog.ts";

export interface Clocks {
  readonly newest: string | undefined;
  readonly local: string;
  readonly utc: string;
}

/** The type is independent of the session's zone. */
function isInstant(type: string): boolean {
  return /^timestamp(tz|\(\d\) with time zone| with time zone)/i.test(type);
}

/** With the reason; undefined if the rows do not show it. */
export function clockOf(
  { newest, local, utc }: Clocks,
  { dialect, say, type }: Pick<Column, "type"> & Pick<Catalog, "dialect"> & { readonly say: Say },
): { readonly clock: "utc" | "server" | undefined; readonly why: string } {
  if (isInstant(type)) {
    return { clock: "utc", why: say("the column holds instants, whatever the zone", "该列保存的是时刻，与时区无关") };
  }
  // Each PostgreSQL session has its own zone, and the writer's is recorded nowhere.
  if (dialect === "postgres") {
    const why = say(
      `${type} keeps no zone, and the writers' stands nowhere`,
      `${type} 不带时区，写入者的时区也没有记录`,
    );
    return { clock: undefined, why };
  }
  const [newestMs, localMs, utcMs] = [newest, local, utc].map((text) =>
    text === undefined ? Number.NaN : Date.parse(`${text.replace(" ", "T")}Z`),
  ) as [number, number, number];
  const minute = 60_000;
  if (Math.abs(localMs - utcMs) < minute)
    return { clock: "utc", why: say("the server's own time is UTC", "服务器自己的时间就是 UTC") };
  if (Number.isNaN(newestMs)) return { clock: undefined, why: say("the table has no rows", "表里没有行") };
  const told = say(
    `the newest row is of ${newest}; it is ${local} by the server's own time, and ${utc} in UTC`,
    `最新的行是 ${newest}；服务器自己的时间是 ${local}，UTC 是 ${utc}`,
  );
  // Nothing was written in the future. An instant older than the zone's offset proves nothing.
  if (newestMs > utcMs + minute && newestMs <= localMs + minute) return { clock: "server", why: told };
  if (newestMs > localMs + minute && newestMs <= utcMs + minute) return { clock: "utc", why: told };
  return { clock: undefined, why: told };
}
