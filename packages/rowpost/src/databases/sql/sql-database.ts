/** A {@link Database} over a dialect's sessions and statements. */
import { DatabaseUnavailableError, describeError, RowpostError } from "../../runtime/errors.ts";
import type { AppendNews, Database, QueueSql } from "../database.ts";
import { createAlertStore } from "./alerts/store.ts";
import { createMessageAdmin } from "./by-hand/message-admin.ts";
import type { Words } from "./cold.ts";
import { type ConfirmationParts, createConfirmationWriter } from "./confirmation-writer.ts";
import { connectFailure } from "./connect-failure.ts";
import type { DoctorLook } from "./doctor-statements.ts";
import { createDoctorStore } from "./doctor-store.ts";
import { createDoorbell } from "./doorbell.ts";
import type { InboxDialect } from "./inbox-statements.ts";
import { createInboxStore } from "./inbox-store.ts";
import type { TableLayout } from "./layout.ts";
import { defaultLayout } from "./layouts.ts";
import { createMessageWriter, type WriterParts } from "./message-writer.ts";
import { createOperationsStore } from "./operations/store.ts";
import { inPlainWordsIfRefused } from "./plain-words.ts";
import type { PlanReader } from "./plans.ts";
import { createQueueStore } from "./queue/queue-store.ts";
import type { QueueStatements } from "./queue/statements.ts";
import { createReconcileStore } from "./reconciling/store.ts";
import { createRelayStore, type StoreParts } from "./relay-store.ts";
import { withoutEngineColumns } from "./sql-names.ts";
import type { CreateStatements, DialectStatements } from "./statements.ts";

export interface SqlDatabaseParts
  extends Pick<Database, "dialect" | "label" | "connect" | "transaction" | "poolSize" | "executor" | "close">,
    Pick<
      WriterParts,
      "isDuplicate" | "endsTransaction" | "isOutsideTransaction" | "lackedLetter" | "lackOf" | "unfitSession"
    >,
    Pick<ConfirmationParts, "translateError">,
    Pick<StoreParts, "isRowRefused"> {
  /** Layouts keep the columns that only MySQL has. */
  readonly hasEngineColumns?: boolean | undefined;
  readonly createStatements: CreateStatements;
  readonly doctorLooks: (layout: TableLayout) => readonly DoctorLook[];
  readonly plans: PlanReader;
  readonly queueStatements: QueueStatements;
  readonly words: Words;
  readonly inbox: InboxDialect;
  readonly isTableMissing: (error: unknown) => boolean;
  /** All sessions are one handle. */
  readonly sharedSession?: boolean | undefined;
  /** For engines that notify of other processes' messages. */
  readonly listen?:
    | ((
        of: TableLayout | "queue",
        ring: (news?: AppendNews) => void,
        signal?: AbortSignal,
      ) => ReturnType<Database["listen"]>)
    | undefined;
}

/** Builds the statements of each layout once. */
export function createSqlDatabase(parts: SqlDatabaseParts): Database {
  const { connect, endsTransaction, isDuplicate, isOutsideTransaction, isRowRefused, lackedLetter, lackOf } = parts;
  const { sharedSession, translateError, unfitSession } = parts;
  const fitting = parts.hasEngineColumns === true ? (layout: TableLayout) => layout : withoutEngineColumns;
  const doorbell = createDoorbell();
  const queueDoorbell = createDoorbell<AppendNews>();
  const made = new Map<TableLayout, DialectStatements>();

  function storeParts(layout: TableLayout) {
    let statements = made.get(layout);
    if (statements === undefined) {
      statements = parts.createStatements(layout);
      made.set(layout, statements);
    }
    return { layout: fitting(layout), statements, connect, isRowRefused, sharedSession };
  }

  const queueSql: QueueSql = {
    connect,
    sharedSession,
    isRowRefused,
    lackedLetter,
    words: parts.words,
    statements: parts.queueStatements,
    isTableMissing: parts.isTableMissing,
  };

  /** No connection: each driver's pool has its own error. */
  function notBegun(error: unknown): unknown {
    const known = connectFailure(error, parts.label) ?? translateError(error, "begin a transaction");
    if (known instanceof RowpostError) return known;
    const what = `no transaction could be begun on ${parts.label} (${describeError(error)})`;
    return new DatabaseUnavailableError(what, { cause: error });
  }

  const plainly = <Store extends object>(store: Store): Store =>
    inPlainWordsIfRefused(store, { isRowRefused, lackedLetter, reasonLength: 1_024 });

  function writerOf(layout: TableLayout) {
    return createMessageWriter({
      ...storeParts(layout),
      isDuplicate,
      endsTransaction,
      isOutsideTransaction,
      lackedLetter,
      lackOf,
      unfitSession,
    });
  }

  return {
    dialect: parts.dialect,
    label: parts.label,
    defaultLayout: fitting(defaultLayout),
    connect,
    async transaction(work, on) {
      let begun = false;
      const begin: typeof work = (tx) => {
        begun = true;
        return work(tx);
      };
      try {
        return await parts.transaction(begin, on);
      } catch (error) {
        throw begun ? error : notBegun(error);
      }
    },
    poolSize: parts.poolSize,
    executor: parts.executor,
    doorbell,
    listen: (layout, signal) => parts.listen?.(layout, () => doorbell.ring(), signal) ?? Promise.resolve(undefined),
    schema: ({ layout }) => storeParts(layout).statements.schema,
    messageWriter: ({ layout }) => writerOf(layout),
    confirmationWriter: ({ layout }) =>
      createConfirmationWriter({
        ...storeParts(layout),
        isOutsideTransaction,
        lackedLetter,
        unfitSession,
        translateError,
      }),
    relayStore({ layout, topics }) {
      const store = storeParts(layout);
      // Requested once per relay, so not cached.
      if (topics === undefined) return createRelayStore(store);
      return createRelayStore({ ...store, statements: parts.createStatements(layout, topics) });
    },
    messageAdmin: ({ layout, statementTimeoutMs }) =>
      plainly(createMessageAdmin({ ...storeParts(layout), writer: writerOf(layout) }, statementTimeoutMs)),
    operations: ({ layout, statementTimeoutMs }) =>
      plainly(createOperationsStore(storeParts(layout), statementTimeoutMs)),
    doctor: ({ layout }) =>
      createDoctorStore({ ...storeParts(layout), looks: parts.doctorLooks(layout), plans: parts.plans }),
    alerts: ({ layout, statementTimeoutMs }) => plainly(createAlertStore(storeParts(layout), statementTimeoutMs)),
    reconcileStore: ({ layout }) => createReconcileStore(storeParts(layout)),
    queue: {
      doorbell: queueDoorbell,
      listen: () => parts.listen?.("queue", (news) => queueDoorbell.ring(news)) ?? Promise.resolve(undefined),
      sql: queueSql,
      store: () => createQueueStore({ ...queueSql, translateError, isOutsideTransaction, unfitSession }),
    },
    inbox: {
      store: (options) =>
        createInboxStore({ dialect: parts.inbox, connect, isDuplicate, isOutsideTransaction, unfitSession }, options),
    },
    close: parts.close,
  };
}
