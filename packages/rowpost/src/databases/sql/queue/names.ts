/** Names of the queue's tables; those of a month contain topic and month. */
import { createLayout } from "../layouts.ts";
import { type Row, text } from "../rows.ts";
import type { Migration } from "../statements.ts";

/** The queue's migrations are recorded under this name. */
export const queueLayout: ReturnType<typeof createLayout> = createLayout({ table: "message_queue" });

export function queueMigrations(tables: readonly string[], milestones: readonly string[]): readonly Migration[] {
  return [
    { version: 1, name: "tables of the queue", statements: tables },
    { version: 2, name: "milestones", statements: milestones },
  ];
}

/**
 * The queue's own tables, in the order in which a topic's rows are deleted. Counters first, which
 * waits for a running append; later ones find no topic.
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

/** A group's tables beside message_group, which keeps its name and its round. */
export const GROUP_TABLES: readonly (typeof TOPIC_TABLES)[number][] = [
  "message_consumption",
  "message_redelivery",
  "message_rewind",
  "message_consumer",
];

/** The table xxx_message_info_x. */
export function infoTable(topic: string, month: number): string {
  return `${topic}_message_info_${month}`;
}

/** The table xxx_message_info_consumption_x. */
export function recordTable(topic: string, month: number): string {
  return `${topic}_message_info_consumption_${month}`;
}

/** Months of this topic's message tables, in order, from tables of any topic. Alias: name. */
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
