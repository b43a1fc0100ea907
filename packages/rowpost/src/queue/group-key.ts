import { part, type Sql } from "../databases/sql/cold.ts";

export interface GroupKey {
  readonly topic: string;
  readonly group: string;
}

export function ofGroup({ topic, group }: GroupKey): Sql {
  return part`topic_id = ${topic} AND consumer_group_id = ${group}`;
}
