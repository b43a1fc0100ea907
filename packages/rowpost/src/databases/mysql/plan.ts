import type { PlanReader } from "../sql/plans.ts";
import { textOrNull } from "../sql/rows.ts";

/** Type ALL reads the whole table, type index a whole index. */
export const plans: PlanReader = {
  explain: "EXPLAIN FORMAT = TRADITIONAL",
  steps: (rows, table) =>
    rows
      // Statements call the table m or by its name.
      .filter((row) => row["table"] === "m" || row["table"] === table)
      .map((row) => ({
        index: row["type"] === "ALL" ? undefined : (textOrNull(row, "key") ?? undefined),
        readsAll: row["type"] === "ALL" || row["type"] === "index",
        rows: row["rows"] === null ? undefined : Number(row["rows"]),
      })),
};
