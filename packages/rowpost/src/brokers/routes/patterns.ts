/**
 * Topic patterns: `*` stands for any characters, everything else for itself. Not the wildcards of
 * one broker's protocol, whose topics the others do not have, and no regular expression: matching
 * takes time in proportion to the topic, whatever the pattern.
 */

/** Tells whether a topic matches, as a whole. */
export function topicMatcher(pattern: string): (topic: string) => boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return (topic) => topic === pattern;
  return (topic) => {
    const end = topic.length - last.length;
    if (end < first.length || !topic.startsWith(first) || !topic.endsWith(last)) return false;
    let from = first.length;
    for (const middle of rest) {
      const found = topic.indexOf(middle, from);
      if (found < 0 || found + middle.length > end) return false;
      from = found + middle.length;
    }
    return true;
  };
}

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
