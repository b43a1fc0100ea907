/** Rights that reach some topics only. */
import { z } from "zod";

/** Names of topics, or their beginnings with `*` behind them. Undefined: all topics. */
export type Topics = readonly string[] | undefined;

export const topicsSchema = z.array(z.string().min(1).max(255)).min(1);

/** Does this topic belong to them? */
export function reaches(topics: Topics, topic: string): boolean {
  return (
    topics === undefined ||
    topics.some((each) => (each.endsWith("*") ? topic.startsWith(each.slice(0, -1)) : topic === each))
  );
}

/** The one topic that they are, for a filter; undefined: there are others, or may be. */
export function onlyTopic(topics: Topics): string | undefined {
  const [only, ...others] = topics ?? [];
  return others.length > 0 || only?.endsWith("*") === true ? undefined : only;
}
