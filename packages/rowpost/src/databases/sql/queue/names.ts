/** Names of the queue's tables: those of the seed, a topic and a month in front and behind. */
import { createLayout } from "../layouts.ts";
import type { Migration } from "../statements.ts";

/** Under this name the queue's migrations are recorded. */
export const queueLayout: ReturnType<typeof createLayout> = createLayout({ table: "message_queue" });

export function queueMigrations(statements: readonly string[]): readonly Migration[] {
  return [{ version: 1, name: "tables of the queue", statements }];
}

/**
 * The queue's own tables, in the order in which a topic's rows are deleted. The counters first: an
 * append under way is waited for, and a later one finds no topic.
 */
export const TOPIC_TABLES = [
  "message_topic_partition",
  "message_topic",
  "message_consumption",
  "message_consumer",
  "message_redelivery",
  "message_rewind",
  "message_dropped_month",
  "message_source",
  "message_group",
] as const;

/** What the seed calls xxx_message_info_x. */
export function infoTable(topic: string, month: number): string {
  return `${topic}_message_info_${month}`;
}

/** What the seed calls xxx_message_info_consumption_x. */
export function recordTable(topic: string, month: number): string {
  return `${topic}_message_info_consumption_${month}`;
}

/** Month of a message table of this topic; undefined: another table. */
export function monthOfTable(topic: string, table: string): number | undefined {
  const month = table.startsWith(`${topic}_message_info_`) ? table.slice(topic.length + 14) : "";
  return /^\d{6}$/.test(month) ? Number(month) : undefined;
}
