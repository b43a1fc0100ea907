import type { AnswerOf } from "rowpost-server/api";
import { language, zone } from "./settings.ts";

export type Count = AnswerOf<"messages">["total"];

const formats = new Map<string, Intl.NumberFormat>();

function numberFormat(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const name = language.value + JSON.stringify(options);
  const known = formats.get(name);
  if (known !== undefined) return known;
  const made = new Intl.NumberFormat(language.value === "zh" ? "zh-CN" : "en", options);
  formats.set(name, made);
  return made;
}

export function formatNumber(value: number): string {
  return numberFormat({}).format(value);
}

/** `≈` about, `+` at least, `?` unknown: an inexact number is always marked. */
export function formatCount({ relation, value }: Count): string {
  if (relation === "gte" && value === 0) return "?";
  if (relation === "est")
    return `≈${numberFormat(value < 10_000 ? {} : { maximumSignificantDigits: 3 }).format(value)}`;
  return formatNumber(value) + (relation === "gte" ? "+" : "");
}

const UNITS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
] as const;

/** The largest unit, and the next one while the number is small: `5 hr 12 min`. */
export function formatDuration(ms: number): string {
  const rest = Math.max(0, ms);
  if (rest < 1_000) return withUnit(Math.round(rest / 100) / 10, "second");
  const at = Math.max(
    0,
    UNITS.findIndex(([, size]) => rest >= size),
  );
  const [unit, size] = UNITS[at] ?? UNITS[3];
  const whole = Math.floor(rest / size);
  const [smaller, smallerSize] = UNITS[at + 1] ?? [unit, size];
  const left = Math.floor((rest % size) / smallerSize);
  const isShort = unit === "second" || unit === "minute" || whole >= 10 || left === 0 || smaller === unit;
  return isShort ? withUnit(whole, unit) : `${withUnit(whole, unit)} ${withUnit(left, smaller)}`;
}

function withUnit(value: number, unit: string): string {
  return numberFormat({ style: "unit", unit, unitDisplay: "short" }).format(value);
}

const dates = new Map<string, Intl.DateTimeFormat>();

function partsOf(at: Date): Readonly<Record<string, string>> {
  const name = zone.value;
  let format = dates.get(name);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-GB", {
      ...(name === "local" ? {} : { timeZone: name }),
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      fractionalSecondDigits: 3,
      hourCycle: "h23",
      timeZoneName: "longOffset",
    });
    dates.set(name, format);
  }
  return Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
}

/** Only the time for today, and the year only if it is another one; sorts and aligns. */
export function formatInstant(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const { day, fractionalSecond, hour, minute, month, second, timeZoneName, year } = partsOf(at);
  const today = partsOf(new Date());
  // The column's head shows today's offset, which differs in summer.
  const offset = timeZoneName === today["timeZoneName"] ? "" : ` ${offsetIn(timeZoneName)}`;
  const date = `${year === today["year"] ? "" : `${year}-`}${month}-${day}`;
  return `${date} ${hour}:${minute}:${second}.${fractionalSecond}${offset}`;
}

/** Without the day: `03:12:05`. */
export function formatClock(at: Date): string {
  const { hour, minute, second } = partsOf(at);
  return `${hour}:${minute}:${second}`;
}

/** Offset of the chosen zone today, such as `+08:00`. */
export function zoneOffset(): string {
  return offsetIn(partsOf(new Date())["timeZoneName"]);
}

function offsetIn(timeZoneName = ""): string {
  return timeZoneName.replace("GMT", "") || "+00:00";
}
