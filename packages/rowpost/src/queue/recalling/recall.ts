/** Recalls a message for all groups by expiring it at once. */
import type { QueueSql } from "../../databases/database.ts";
import { openRoom } from "../../databases/sql/queue/room.ts";
import { textOrNull } from "../../databases/sql/rows.ts";
import { decodeHeaders } from "../../message/decode.ts";
import { inAscii } from "../../runtime/ascii.ts";
import { checkOptions, type OptionKinds } from "../../runtime/check-options.ts";
import { checkedNote, type HandOptions } from "../groups/groups.ts";
import { EXPIRES_HEADER, RECALLED_HEADER } from "../producing/encode.ts";
import { type QueueMessageDetail, showMessage } from "../searching/search.ts";
import type { Searching } from "../searching/searching.ts";
import { lockHeaders, writeHeaders } from "./statements.ts";

/** Options of `queue.recall`. */
export interface RecallOptions extends Omit<HandOptions, "group"> {
  /** Id of the message. */
  readonly id: string;
}

export interface Recalling {
  recall(topic: string, id: string, why: string): Promise<void>;
  close(): Promise<void>;
}

interface RecallParts {
  readonly recalling: Recalling;
  readonly searching: Searching;
  /** Throws `InvalidNameError`, `UnknownTopicError`. */
  readonly requireTopic: (topic: string) => Promise<unknown>;
}

const KINDS: OptionKinds<RecallOptions> = { topic: "any", id: "any", author: "any", reason: "any" };

/** Expired by any clock. */
const LONG_AGO = new Date(0).toISOString();

/** Opens no connection before its first use. */
export function createRecalling(sql: QueueSql): Recalling {
  const room = openRoom(sql, { lockWaitTimeoutMs: 5_000 });
  return {
    async recall(topic, of, why) {
      try {
        await room.transaction(async (run) => {
          const [row] = (await run(lockHeaders(topic, of))).rows;
          if (row === undefined) return;
          const read = decodeHeaders(textOrNull(row, "headers"));
          // No handler gets a message with unreadable headers.
          if ("broken" in read) return;
          const recalled = { ...read.headers, [EXPIRES_HEADER]: LONG_AGO, [RECALLED_HEADER]: why };
          await run(writeHeaders(topic, of, inAscii(JSON.stringify(recalled))));
        });
      } catch (error) {
        // The next lookup reports the dropped month.
        if (!sql.isTableMissing(error)) throw error;
      }
    },
    close: () => room.close(),
  };
}

export async function recallMessage(
  { recalling, requireTopic, searching }: RecallParts,
  options: RecallOptions,
): Promise<QueueMessageDetail | undefined> {
  checkOptions("recall", options, KINDS);
  const { topic, id: of } = options;
  const { author, reason } = checkedNote(options);
  await requireTopic(topic);
  // Throws for a dropped month.
  if ((await showMessage(searching, topic, of)) === undefined) return undefined;
  await recalling.recall(topic, of, `recalled by ${author}: ${reason}`);
  return await showMessage(searching, topic, of);
}
