/** Addresses of the queue's pages; the query has all their state. */
import { hrefOf } from "../address.ts";

export interface QueuePlace {
  readonly topic?: string | undefined;
  readonly group?: string | undefined;
  readonly message?: string | undefined;
}

export function queueHref(
  source: string,
  { group, message, topic }: QueuePlace = {},
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  return hrefOf(source, "queue", { query: { topic, group, message, ...query } });
}
