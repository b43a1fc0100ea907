/** Names of the queue's tables: those of the seed, a topic and a month in front and behind. */
import { createLayout } from "../layouts.ts";
import { type Row, text } from "../rows.ts";
import type { Migration } from "../statements.ts";

/** Under this name the queue's migrations are recorded. */
export const queueLayout: ReturnType<typeof createLayout> = createLayout({ table: "message_queue" });

export function queueMigrations(tables: readonly string[], milestones: readonly string[]): readonly Migration[] {
  return [
    { version: 1, name: "tables of the queue", statements: tables },
    { version: 2, name: "milestones", statements: milestones },
  ];
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
  "message_milestone",
  "message_group",
] as const;

/** What a group has beside its row in message_group, which keeps its name and its round. */
export const GROUP_TABLES: readonly (typeof TOPIC_TABLES)[number][] = [
  "message_consumption",
  "message_redelivery",
  "message_rewind",
  "message_consumer",
];

/** What the seed calls xxx_message_info_x. */
export function infoTable(topic: string, month: number): string {
  return `${topic}_message_info_${month}`;
}

/** What the seed calls xxx_message_info_consumption_x. */
export function recordTable(topic: string, month: number): string {
  return `${topic}_message_info_consumption_${month}`;
}

/** Months of the message tables among these of a topic and of others, in order. Alias: name. */
export function monthsOfTables(topic: string, rows: readonly Row[]): number[] {
  const start = `${topic}_message_info_`;
  const months = rows
    .map((row) => text(row, "name"))
    .filter((name) => name.startsWith(start))
    .map((name) => name.slice(start.length));
  return months
    .filter((month) => /^\d{6}$/.test(month))
    .map(Number)
    .sort((left, right) => left - right);
}
