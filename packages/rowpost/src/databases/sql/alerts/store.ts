import { randomUUID } from "node:crypto";
import type { AlertStore, LateMessages, Silence, StoredAlerts } from "../../../admin/alerts.ts";
import type { OperatorAction } from "../../../admin/message-admin.ts";
import { inAscii } from "../../../runtime/ascii.ts";
import { ConfigurationError } from "../../../runtime/errors.ts";
import type { Executor } from "../../../transactions/executor.ts";
import { auditEntry } from "../by-hand/changes-by-hand.ts";
import { recordChange } from "../by-hand/statements.ts";
import { type Cold, spelled } from "../cold.ts";
import type { StoreParts } from "../relay-store.ts";
import { integer, type Row, text, textOrNull } from "../rows.ts";
import { createToolSlots } from "../tool-slots.ts";
import {
  addAlerts,
  addSilence,
  endSilence,
  findQueue,
  forgetSilences,
  holdAlerts,
  lateConfirmations,
  lateSending,
  listSilences,
  readAlerts,
  releaseAlerts,
  saveAlerts,
} from "./statements.ts";

const MOST_SILENCES = 100;
const LONGEST_SILENCE_MS = 7 * 86_400_000;

/** Opens its session at the first use. */
export function createAlertStore(parts: StoreParts, statementTimeoutMs?: number): AlertStore {
  const { table } = parts.statements;
  const slots = createToolSlots(parts, statementTimeoutMs);
  const run = (statement: Cold) => slots.use("housekeeping", (session) => session.run(spelled(table.words, statement)));
  const inTransaction = <T>(work: (tx: Executor) => Promise<T>): Promise<T> =>
    slots.retry("housekeeping", (session) => session.transaction(work));

  async function hold(lease: Parameters<AlertStore["take"]>[0]): Promise<boolean> {
    return (await run(holdAlerts(table, lease))).affected > 0;
  }

  async function read(): Promise<StoredAlerts | undefined> {
    const [row] = (await run(readAlerts(table))).rows;
    return row && storedAlerts(row);
  }

  function changeSilence(
    what: string,
    { action, details, statement }: { action: OperatorAction; details: object; statement: Cold },
  ): Promise<boolean> {
    return inTransaction(async (tx) => {
      if ((await tx.run(spelled(table.words, statement))).affected === 0) return false;
      const entry = auditEntry(what, action, { changed: 0, details: JSON.stringify(details) });
      await tx.run(spelled(table.words, recordChange(table, entry)));
      return true;
    });
  }

  return {
    async take(lease) {
      if (!(await hold(lease))) {
        if ((await read()) !== undefined) return undefined;
        await run(addAlerts(table));
        if (!(await hold(lease))) return undefined;
      }
      return await read();
    },

    save: async (request) => (await run(saveAlerts(table, { ...request, state: inAscii(request.state) }))).affected > 0,

    async release(owner) {
      await run(releaseAlerts(table, owner));
    },

    read: async () => (await read()) ?? { state: undefined, nowMs: 0, savedMs: undefined },

    async late({ sendingMs, unconfirmedMs }) {
      const unconfirmed = await run(lateConfirmations(table, unconfirmedMs));
      const sending = await run(lateSending(table, sendingMs));
      return { unconfirmed: unconfirmed.rows.map(lateMessages), sending: sending.rows.map(lateMessages) };
    },

    async hasQueue() {
      const [row] = (await run(findQueue())).rows;
      return row !== undefined && integer(row, "found") > 0;
    },

    silences: async () => (await run(listSilences(table, MOST_SILENCES))).rows.map(silence),

    async silence({ action, forMs, rule, subject }) {
      if (!(forMs >= 1_000 && forMs <= LONGEST_SILENCE_MS))
        throw new ConfigurationError("a silence lasts between a second and seven days");
      if (action.author === "" || action.reason.trim() === "")
        throw new ConfigurationError("a silence needs an author and a reason");
      const id = randomUUID();
      const { author, reason } = action;
      await run(forgetSilences(table));
      await changeSilence("silence", {
        action,
        details: { silence: id, rule, subject, forMs },
        statement: addSilence(table, { id, rule, subject, forMs, author, reason }),
      });
      return id;
    },

    endSilence: ({ action, id }) =>
      changeSilence("silence end", { action, details: { silence: id }, statement: endSilence(table, id) }),

    close: () => slots.close(),
  };
}

function storedAlerts(row: Row): StoredAlerts {
  const savedAt = textOrNull(row, "saved_at");
  const savedMs = savedAt === null ? undefined : Date.parse(savedAt);
  return { state: textOrNull(row, "state") ?? undefined, nowMs: Date.parse(text(row, "clock")), savedMs };
}

function lateMessages(row: Row): LateMessages {
  return { name: textOrNull(row, "name") ?? "", count: integer(row, "count"), lateMs: integer(row, "late_ms") };
}

function silence(row: Row): Silence {
  return {
    id: text(row, "id"),
    rule: textOrNull(row, "rule_name") ?? undefined,
    subject: textOrNull(row, "subject") ?? undefined,
    author: text(row, "author"),
    reason: text(row, "reason"),
    createdAt: text(row, "created_at"),
    endsAt: text(row, "ends_at"),
    active: integer(row, "active") === 1,
  };
}
