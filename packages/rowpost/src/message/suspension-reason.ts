/**
 * Beginning of `fail_reason` of a row that a suspension rule has suspended: who lifts the rule
 * finds its rows by it. The value stands in quotes and escaped, so that no rule's beginning is the
 * beginning of another one's (a rule on `a`, and one on `a: b`).
 */
export function ruleReason(rule: { readonly scope: string; readonly value: string }): string {
  return `${RULE_WORDS}${rule.scope}=${JSON.stringify(rule.value)}: `;
}

/** With these every {@link ruleReason} begins. */
export const RULE_WORDS = "suspended by rule ";

/** The rule that a `fail_reason` names, and its words; undefined: it names none. */
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
