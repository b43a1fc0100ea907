import { createLayout } from "rowpost";

/** How rowpost reads and writes the shop's own table. */
export const layout = createLayout({
  table: "app_event",
  columns: {
    id: "event_id",
    messageType: "kind",
    messageKey: "ref",
    topic: "channel",
    messageBody: "payload",
    state: "status",
    retryCount: "tries",
    nextRetryAt: "next_try",
    failReason: "error",
    messageId: "receipt",
    lockVersion: "version",
    gmtCreate: "created",
    gmtModified: "changed",
    // What this table does not have. Asking for such a feature is an error that names the column.
    lastRetryAt: undefined,
    headers: undefined,
    contentType: undefined,
    orderingKey: undefined,
    deliveryCount: undefined,
    deliverAt: undefined,
    sentAt: undefined,
    consumedAt: undefined,
    createdBy: undefined,
    updatedBy: undefined,
    settlePad: undefined,
  },
  states: { pending: "new", sending: "busy", sent: "done", failed: "error", consumed: "read", suspended: "held" },
});
