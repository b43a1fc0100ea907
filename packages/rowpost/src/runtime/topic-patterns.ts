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

/** Tells whether some topic matches both patterns. */
function patternsMeet(left: string, right: string): boolean {
  /** Whether what of `left` has been looked at, from its end, meets `right` from each place on. */
  let meets = Array.from({ length: right.length + 1 }, (_, place) => /^\**$/.test(right.slice(place)));
  for (let index = left.length - 1; index >= 0; index -= 1) {
    const behind = meets;
    meets = [];
    for (let place = right.length; place >= 0; place -= 1) {
      const [one, other] = [left[index], right[place]];
      meets[place] =
        one === "*" || other === "*"
          ? behind[place] === true || (other !== undefined && meets[place + 1] === true)
          : one === other && behind[place + 1] === true;
    }
  }
  return meets[0] === true;
}

/** What a relay sends, and where, as it reports it. */
interface Place {
  readonly sendsTo?: string | undefined;
  /** Patterns of the topics that it takes; undefined: every topic. */
  readonly topics?: readonly string[] | undefined;
}

/** Whether it takes messages of this topic. */
export function takesTopic({ topics }: Pick<Place, "topics">, topic: string): boolean {
  return topics?.some((pattern) => topicMatcher(pattern)(topic)) ?? true;
}

/**
 * Whether two relays of one table take each other's messages: those that share leases send them to
 * different places, or those that do not share leases both take a topic.
 */
export function disagree(left: Place, right: Place): boolean {
  if (topicsText(left) === topicsText(right)) {
    return left.sendsTo !== right.sendsTo && left.sendsTo !== undefined && right.sendsTo !== undefined;
  }
  const others = right.topics ?? ["*"];
  return (left.topics ?? ["*"]).some((pattern) => others.some((other) => patternsMeet(pattern, other)));
}

/** Where it sends what, for people. */
export function placeText({ sendsTo, topics }: Place): string {
  const place = sendsTo ?? "a place that its version does not tell";
  return topics === undefined ? place : `${place} (topics ${topics.join(", ")})`;
}

function topicsText({ topics }: Place): string | undefined {
  return topics === undefined ? undefined : JSON.stringify([...topics].sort());
}
