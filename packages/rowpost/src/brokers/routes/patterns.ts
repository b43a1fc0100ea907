import { topicMatcher } from "../../runtime/topic-patterns.ts";

/** What is wrong with a pattern that stands behind these; undefined: nothing. */
export function whatIsWrongWith(pattern: string, before: readonly string[]): string | undefined {
  if (pattern.trim() === "") return "a pattern is empty; a topic such as orders, or orders.* is expected";
  if (pattern !== pattern.trim()) return `"${pattern}" begins or ends with blanks, which no topic does`;
  if (/(?:^|\.)[#>]$/.test(pattern)) {
    return `"${pattern}" would be compared as it stands: here * alone stands for any characters, dots included`;
  }
  // Only a star takes the later one's star: then it takes all that this one stands for.
  const covering = before.find((earlier) => topicMatcher(earlier)(pattern));
  if (covering === pattern) return `"${pattern}" stands there twice`;
  if (covering !== undefined) {
    return `"${pattern}" is never reached: "${covering}" stands before it and takes all its topics; put "${pattern}" first`;
  }
  return undefined;
}
