/**
 * Prefix of `fail_reason` of rows suspended by a rule, by which lifting the rule finds them. Quoted
 * and escaped, so that no rule's prefix starts another's (a rule on `a`, and one on `a: b`).
 */
export function ruleReason(rule: { readonly scope: string; readonly value: string }): string {
  return `${RULE_WORDS}${rule.scope}=${JSON.stringify(rule.value)}: `;
}

/** Beginning of every {@link ruleReason}. */
export const RULE_WORDS = "suspended by rule ";

/** The rule named in a `fail_reason`, with its text, if any. */
export function ruleOfReason(
  failReason: string | null,
): { readonly scope: string; readonly value: string; readonly words: string } | undefined {
  const [, scope, value, words] = /^suspended by rule (\w+)=("(?:[^"\\]|\\.)*"): (.*)$/s.exec(failReason ?? "") ?? [];
  if (scope === undefined || value === undefined) return undefined;
  try {
    return { scope, value: String(JSON.parse(value)), words: words ?? "" };
  } catch {
    return undefined;
  }
}
