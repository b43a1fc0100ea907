import { zone } from "./settings.ts";

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(name: string): Intl.DateTimeFormat {
  const known = formats.get(name);
  if (known !== undefined) return known;
  const made = new Intl.DateTimeFormat("en-GB", {
    ...(name === "local" ? {} : { timeZone: name }),
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  formats.set(name, made);
  return made;
}

/** `2026-11-23T12:00`. */
export function wallClock(at: Date): string {
  const parts = Object.fromEntries(
    formatOf(zone.value)
      .formatToParts(at)
      .map(({ type, value }) => [type, value]),
  );
  return `${parts["year"]}-${parts["month"]}-${parts["day"]}T${parts["hour"]}:${parts["minute"]}`;
}

/**
 * The instant of a local time. A time that occurs twice in autumn means the first; one skipped in
 * spring is moved forward by the gap.
 */
export function instantAt(text: string): string | undefined {
  const asUtc = Date.parse(`${text}Z`);
  if (Number.isNaN(asUtc)) return undefined;
  const offset = (ms: number): number => Date.parse(`${wallClock(new Date(ms))}Z`) - ms;
  const whole = Math.floor(asUtc / 60_000) * 60_000;
  const day = 86_400_000;
  // The offset before a change of the clocks, else the one after it.
  const found = [whole - offset(whole - day), whole - offset(whole + day)].find(
    (ms) => wallClock(new Date(ms)) === text.slice(0, 16),
  );
  return new Date(found ?? whole - offset(whole - day)).toISOString();
}

export function yesterdayNoon(): string {
  return `${wallClock(new Date(Date.now() - 86_400_000)).slice(0, 10)}T12:00`;
}
