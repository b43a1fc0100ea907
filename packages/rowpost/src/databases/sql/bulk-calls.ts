/** The values of {@link BulkStatements}, in the order of the places in their texts. */
import type { Statement } from "../../transactions/executor.ts";
import type { BulkStatements } from "./bulk-statements.ts";
import { clip } from "./rows.ts";

type Name = Exclude<keyof BulkStatements, "moveOperation">;

export type PlannedTexts = Readonly<
  Record<"addOperation" | "addBatch" | "readOperation" | "listOperations" | "startOperation" | "planOperation", string>
> & { readonly moveOperation: (from: string, isOver: boolean) => string };
export type ForgottenTexts = Readonly<
  Record<"lapsedOperations" | "deleteBatches" | "deleteConflicts" | "deleteOperation", string>
>;
export type WorkedTexts = Readonly<Record<Exclude<Name, keyof PlannedTexts | keyof ForgottenTexts>, string>>;

/**
 * addOperation: id, kind, filter, highest id, id that is planned up to, total, author. addBatch:
 * id, number, messages. startOperation: reason, via, rate, milliseconds, id, author. moveOperation:
 * state, error, id. planOperation: id that is planned up to, count, id. holdOperation: owner,
 * milliseconds, id, owner. countOperation: changed, conflicts, vanished, id. addConflicts: id,
 * JSON. readConflicts: id, id of a message, limit. The others: what they are asked for.
 */
export function bulkCalls(texts: PlannedTexts & WorkedTexts & ForgottenTexts): BulkStatements {
  const call = (name: Name, params: readonly unknown[]): Statement => ({ name, text: texts[name], params });
  return {
    addOperation: ({ author, filter, id, kind, maxId, plannedId, total }) =>
      call("addOperation", [id, kind, filter, maxId, plannedId, total, clip(author, 64)]),
    addBatch: ({ id, messages, number }) => call("addBatch", [id, number, messages]),
    readOperation: (id) => call("readOperation", [id]),
    listOperations: (limit) => call("listOperations", [limit]),
    startOperation: ({ action: { author, reason, via }, id, rate, untilMs }) =>
      call("startOperation", [clip(reason, 1_024), via ?? null, rate, untilMs, id, clip(author, 64)]),
    moveOperation: ({ error, from, id, to }) => ({
      name: "moveOperation",
      text: texts.moveOperation(
        from.map((state) => `'${state}'`).join(", "),
        to === "done" || to === "cancelled" || to === "failed",
      ),
      params: [to, error === null ? null : clip(error, 1_024), id],
    }),
    planOperation: ({ count, id, plannedId }) => call("planOperation", [plannedId, count, id]),
    runningOperations: (owner) => call("runningOperations", [owner]),
    holdOperation: ({ id, leaseMs, owner }) => call("holdOperation", [owner, leaseMs, id, owner]),
    readBatch: (id) => call("readBatch", [id]),
    deleteBatch: ({ id, number }) => call("deleteBatch", [id, number]),
    countOperation: ({ changed, conflicts, id, vanished }) =>
      call("countOperation", [changed, conflicts, vanished, id]),
    addConflicts: ({ conflicts, id }) => call("addConflicts", [id, JSON.stringify(conflicts)]),
    readConflicts: ({ afterId, id, limit }) => call("readConflicts", [id, afterId, limit]),
    lapsedOperations: () => call("lapsedOperations", []),
    deleteBatches: (id) => call("deleteBatches", [id]),
    deleteConflicts: (id) => call("deleteConflicts", [id]),
    deleteOperation: (id) => call("deleteOperation", [id]),
  };
}
