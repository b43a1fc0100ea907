import type { PlanStep } from "../../admin/doctor/store.ts";
import type { PlanReader } from "../sql/plans.ts";

export interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly "Plan Rows": number;
  readonly Plans?: readonly PlanNode[];
}

/** An index without a condition is walked from its start; a LIMIT may end the walk. */
export const plans: PlanReader = {
  explain: "EXPLAIN (FORMAT JSON)",
  steps(rows, table) {
    const plan = rows[0]?.["QUERY PLAN"];
    const [first] = (typeof plan === "string" ? JSON.parse(plan) : plan) as [{ readonly Plan: PlanNode }];
    return stepsOf(first.Plan, table);
  },
};

function stepsOf(node: PlanNode, table: string): PlanStep[] {
  const { "Index Name": index, "Node Type": type, "Plan Rows": rows } = node;
  const below = (node.Plans ?? []).flatMap((each) => stepsOf(each, table));
  // The bitmap of an index names no table and is below the node that does.
  const isOfTable = node["Relation Name"] === table && /Scan$/.test(type);
  if (!isOfTable) return below;
  const bitmap = (node.Plans ?? []).flatMap(indexesOf)[0];
  const readsAll = type === "Seq Scan";
  // For a full table read the row estimate is not the number of rows read.
  return [{ index: index ?? bitmap, readsAll, rows: readsAll ? undefined : rows }, ...below];
}

function indexesOf(node: PlanNode): string[] {
  const own = node["Index Name"];
  return [...(own === undefined ? [] : [own]), ...(node.Plans ?? []).flatMap(indexesOf)];
}
