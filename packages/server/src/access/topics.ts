import { z } from "zod";

export type Topics = readonly string[] | undefined;

export const topicsSchema = z.array(z.string().min(1).max(255)).min(1);

export function reaches(topics: Topics, topic: string): boolean {
  return (
    topics === undefined ||
    topics.some((each) => (each.endsWith("*") ? topic.startsWith(each.slice(0, -1)) : topic === each))
  );
}

export function onlyTopic(topics: Topics): string | undefined {
  const [only, ...others] = topics ?? [];
  return others.length > 0 || only?.endsWith("*") === true ? undefined : only;
}
