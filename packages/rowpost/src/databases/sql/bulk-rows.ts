/** From the rows of bulk operations to the objects of the port, and what each kind does. */
import type { MessageState } from "../../message/states.ts";
import type { BulkKind, BulkOperation, BulkState } from "../../outbox/bulk-operations.ts";
import type { MessageFilter, OperatorAction } from "../../outbox/message-admin.ts";
import type { HandChange, HandChanges } from "./hand-changes.ts";
import { integer, type Row, text, textOrNull } from "./rows.ts";

/** What a worker has to know beside. */
export interface PlannedOperation extends BulkOperation {
  readonly maxId: string;
  /** Undefined: all messages were found. */
  readonly plannedId: string | undefined;
  readonly action: OperatorAction;
  /** Undefined: until somebody resumes them. */
  readonly untilMs: number | undefined;
}

export function bulkOperation(row: Row): BulkOperation {
  return {
    id: text(row, "id"),
    kind: text(row, "kind") as BulkKind,
    state: text(row, "state") as BulkState,
    filter: JSON.parse(text(row, "filter")) as MessageFilter,
    total: integer(row, "total"),
    planned: textOrNull(row, "planned_id") === null,
    changed: integer(row, "changed"),
    conflicts: integer(row, "conflicts"),
    vanished: integer(row, "vanished"),
    rate: integer(row, "rate"),
    author: text(row, "author"),
    reason: text(row, "reason"),
    error: textOrNull(row, "error"),
    createdAt: text(row, "created_at"),
    startedAt: textOrNull(row, "started_at"),
    endedAt: textOrNull(row, "ended_at"),
  };
}

export function plannedOperation(row: Row): PlannedOperation {
  const operation = bulkOperation(row);
  const { author, reason } = operation;
  return {
    ...operation,
    maxId: text(row, "max_id"),
    plannedId: textOrNull(row, "planned_id") ?? undefined,
    action: { author, reason, via: textOrNull(row, "via") ?? undefined },
    untilMs: textOrNull(row, "until_in_ms") === null ? undefined : Math.max(1, integer(row, "until_in_ms")),
  };
}

const MEANT: Readonly<Record<BulkKind, readonly MessageState[]>> = {
  retry: ["failed"],
  resend: ["sent"],
  suspend: ["pending", "failed"],
  resume: ["suspended"],
  archive: ["sent", "consumed", "failed"],
  delete: ["sent", "consumed", "failed"],
};

/** Messages that the kind may change; failed ones are removed only where the filter names them. */
export function bulkFilter(kind: BulkKind, filter: MessageFilter): MessageFilter {
  const isRemoval = kind === "archive" || kind === "delete";
  const states = MEANT[kind].filter((state) =>
    filter.states === undefined ? !(isRemoval && state === "failed") : filter.states.includes(state),
  );
  return { ...filter, states };
}

export function bulkChange(changes: HandChanges, { kind, untilMs }: PlannedOperation): HandChange {
  switch (kind) {
    case "retry":
    case "resend":
      return changes.retry({ resend: kind === "resend", now: false });
    case "suspend":
      return changes.suspend(untilMs ?? null);
    case "resume":
      return changes.resume();
    case "archive":
    case "delete":
      return changes.remove(kind, true);
  }
}
