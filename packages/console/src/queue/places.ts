/** Addresses of the queue's pages: all that they show stands in the query. */
import type { AnswerOf } from "rowpost-server/api";
import { hrefOf } from "../address.ts";

/** A group of a topic, as lists of it show it. */
export type Group = AnswerOf<"queueGroups">["items"][number];

export interface QueuePlace {
  readonly topic?: string | undefined;
  readonly group?: string | undefined;
  /** Id of a message. */
  readonly message?: string | undefined;
}

export function queueHref(
  source: string,
  { group, message, topic }: QueuePlace = {},
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  return hrefOf(source, "queue", { query: { topic, group, message, ...query } });
}
