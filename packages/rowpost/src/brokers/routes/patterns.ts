import { topicMatcher } from "../../runtime/topic-patterns.ts";

/** The error of a pattern behind these; undefined if it is valid. */
export function whatIsWrongWith(pattern: string, before: readonly string[]): string | undefined {
  if (pattern.trim() === "") return "a pattern is empty; a topic such as orders, or orders.* is expected";
  if (pattern !== pattern.trim()) return `"${pattern}" begins or ends with blanks, which no topic does`;
  if (/(?:^|\.)[#>]$/.test(pattern)) {
    return `"${pattern}" would be compared as it stands: here * alone stands for any characters, dots included`;
  }
  // Only a star covers the later pattern's star, and then everything it matches.
  const covering = before.find((earlier) => topicMatcher(earlier)(pattern));
  if (covering === pattern) return `"${pattern}" stands there twice`;
  if (covering !== undefined) {
    return `"${pattern}" is never reached: "${covering}" stands before it and takes all its topics; put "${pattern}" first`;
  }
  return undefined;
}
