/**
 * Topic patterns: `*` stands for any characters. Brokers' wildcards differ, and regular expressions
 * can be slow; matching takes time proportional to the topic.
 */

/** Whether the whole topic matches. */
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

/** Whether some topic matches both patterns. */
function patternsMeet(left: string, right: string): boolean {
  /** Whether the processed end of `left` meets `right` from each position on. */
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
  /** Patterns of its topics; undefined: every topic. */
  readonly topics?: readonly string[] | undefined;
}

/** Whether it takes messages of this topic. */
export function takesTopic({ topics }: Pick<Place, "topics">, topic: string): boolean {
  return topics?.some((pattern) => topicMatcher(pattern)(topic)) ?? true;
}

/**
 * Whether two relays of one table take each other's messages: relays that share leases send them to
 * different places, or relays that do not share leases both take a topic.
 */
export function disagree(left: Place, right: Place): boolean {
  if (topicsText(left) === topicsText(right)) {
    return left.sendsTo !== right.sendsTo && left.sendsTo !== undefined && right.sendsTo !== undefined;
  }
  const others = right.topics ?? ["*"];
  return (left.topics ?? ["*"]).some((pattern) => others.some((other) => patternsMeet(pattern, other)));
}

/** For people. */
export function placeText({ sendsTo, topics }: Place): string {
  const place = sendsTo ?? "a place that its version does not tell";
  return topics === undefined ? place : `${place} (topics ${topics.join(", ")})`;
}

function topicsText({ topics }: Place): string | undefined {
  return topics === undefined ? undefined : JSON.stringify([...topics].sort());
}
