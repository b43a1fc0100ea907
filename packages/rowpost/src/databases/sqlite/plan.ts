import type { PlanReader } from "../sql/plans.ts";
import { text } from "../sql/rows.ts";

/**
 * `SEARCH m USING INDEX name (…)` or `SCAN m`, without row estimates. Rows behind an id are all
 * rows, including finished ones.
 */
export const plans: PlanReader = {
  explain: "EXPLAIN QUERY PLAN",
  steps: (rows, table) =>
    rows.flatMap((row) => {
      const [, verb, name, way = ""] = /^(SEARCH|SCAN) (\S+)(.*)$/.exec(text(row, "detail")) ?? [];
      if (name !== "m" && name !== table) return [];
      const [, found] = /USING (?:COVERING )?INDEX (\S+)/.exec(way) ?? [];
      const index = /PRIMARY KEY \(rowid[=]/.test(way) ? "the primary key" : found;
      return [{ index, readsAll: verb === "SCAN" || index === undefined, rows: undefined }];
    }),
};
