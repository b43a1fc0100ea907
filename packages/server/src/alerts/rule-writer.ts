/** What a rule's words are made of. */
import type { Condition } from "./rules.ts";

/** The words of a rule. */
export interface RuleText {
  readonly title: string;
  readonly why: string;
  /** What is run first. */
  readonly command: string;
  readonly peak: string;
}

export type Told = Condition & { readonly peak: number };
export type Writer = (told: Told, fact: (name: string) => string) => Omit<RuleText, "peak">;

/** For a shell, where it must be. */
export function quoted(text: string): string {
  return /^[\w.,:@%+/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
