/** Findings of the doctor: one entry each, in English and Chinese. */
import { SETTING_DIAGNOSES } from "./settings.ts";
import { TABLE_DIAGNOSES } from "./tables.ts";
import { WORK_DIAGNOSES } from "./work.ts";

/**
 * `error`: messages are not sent, or may be lost. `warning`: they may be late, or it may become an
 * error. `note`: nothing has to be done.
 */
export type Severity = "error" | "warning" | "note";

/** A finding. */
export interface Diagnosis {
  /**
   * Stable id: D1.. reaching the tables, D2.. settings, D3.. other activity in the database, D4..
   * messages and relays, D5.. the broker and this process.
   */
  readonly id: string;
  /** How urgent it is. */
  readonly severity: Severity;
  /** What was seen, with figures. */
  readonly what: string;
  /** The consequences. */
  readonly why: string;
  /** The remedy: a statement, a command, or a sentence. */
  readonly mend: string;
  /** The part of `mend` that can be run as it is. */
  readonly command?: string | undefined;
  /** The same texts in Chinese. */
  readonly zh: Pick<Diagnosis, "what" | "why" | "mend">;
}

/** English and Chinese; `{name}` stands for a fact. */
type Entry = {
  readonly id: string;
  readonly severity: Severity;
  readonly why: string;
  readonly whyZh: string;
  readonly command?: string;
} & (
  | { readonly what: string; readonly whatZh: string }
  // The name of a setting, and its value.
  | { readonly what?: never; readonly whatZh?: never }
) &
  // Omitted when it is the command alone.
  ({ readonly mend: string; readonly mendZh: string } | { readonly mend?: never; readonly mendZh?: never });

type Table = typeof SETTING_DIAGNOSES & typeof TABLE_DIAGNOSES & typeof WORK_DIAGNOSES;

export type DiagnosisKind = keyof Table;

type NamesIn<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;
type SettingNames<Kind extends DiagnosisKind> = Table[Kind] extends { readonly what: string }
  ? never
  : "name" | "value";

/** Facts named in a finding's texts; the compiler requires each. */
export type DiagnosisFacts<Kind extends DiagnosisKind> = {
  readonly [Name in Exclude<NamesIn<Table[Kind][keyof Table[Kind]]> | SettingNames<Kind>, "command">]:
    | string
    | number
    | bigint;
};

/** Findings about a setting that show its value. */
export type SettingDiagnosis = {
  [Kind in DiagnosisKind]: Table[Kind] extends { readonly what: string } ? never : Kind;
}[DiagnosisKind];

const DIAGNOSES: Readonly<Record<DiagnosisKind, Entry>> = {
  ...SETTING_DIAGNOSES,
  ...TABLE_DIAGNOSES,
  ...WORK_DIAGNOSES,
};

/** Builds the finding; `severity` only where it depends on the facts. */
export function diagnose<Kind extends DiagnosisKind>(
  kind: Kind,
  facts: DiagnosisFacts<Kind>,
  severity: Severity = DIAGNOSES[kind].severity,
): Diagnosis {
  const entry = DIAGNOSES[kind];
  const known: Record<string, unknown> = { ...facts };
  const fill = (text: string): string => text.replace(/\{(\w+)\}/g, (_, name: string) => String(known[name]));
  const command = entry.command === undefined ? undefined : fill(entry.command);
  known["command"] = command;
  const words = (what: string, why: string, mend = "{command}"): Diagnosis["zh"] => ({
    what: fill(what),
    why: fill(why),
    mend: fill(mend),
  });
  const { id, mend, mendZh, what = "{name} is {value}", whatZh = "{name} 是 {value}", why, whyZh } = entry;
  return { id, severity, ...words(what, why, mend), command, zh: words(whatZh, whyZh, mendZh) };
}
