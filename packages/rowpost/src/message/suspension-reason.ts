/**
 * Beginning of `fail_reason` of a row that a suspension rule has suspended: who lifts the rule
 * finds its rows by it. The value stands in quotes and escaped, so that no rule's beginning is the
 * beginning of another one's (a rule on `a`, and one on `a: b`).
 */
export function ruleReason(rule: { readonly scope: string; readonly value: string }): string {
  return `suspended by rule ${rule.scope}=${JSON.stringify(rule.value)}: `;
}
