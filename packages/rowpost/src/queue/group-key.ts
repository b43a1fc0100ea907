import { part, type Sql } from "../databases/sql/cold.ts";

/** A group of a topic. */
export interface GroupKey {
  readonly topic: string;
  readonly group: string;
}

/** The condition of a group's rows. */
export function ofGroup({ topic, group }: GroupKey): Sql {
  return part`topic_id = ${topic} AND consumer_group_id = ${group}`;
}
