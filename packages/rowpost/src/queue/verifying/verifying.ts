import type { QueueSql } from "../../databases/database.ts";
import { openRoom } from "../../databases/sql/queue/room.ts";
import { integer, text, textOrNull } from "../../databases/sql/rows.ts";
import { droppedMonths } from "../retention/statements.ts";
import { placesBefore } from "../rewinding/statements.ts";
import { readChunk, readGroups, type VerifyChunk } from "./statements.ts";

export interface VerifiedGroup {
  readonly group: string;
  readonly partition: number;
  /** Where the group began. */
  readonly beginId: string;
  readonly nextId: string;
  readonly round: number;
}

/** Of a message, or of a batch that begins with it. */
export interface VerifiedRecord {
  readonly round: number;
  readonly batch: { readonly lastId: string; readonly messages: number } | undefined;
}

export interface VerifiedMessage {
  readonly id: string;
  readonly records: readonly VerifiedRecord[];
  /** It comes again, or is a dead letter. */
  readonly again: boolean;
}

export interface Verifying {
  groups(topic: string): Promise<VerifiedGroup[]>;
  /** Months with tables that are not being dropped, in order. */
  months(topic: string): Promise<number[]>;
  /** Undefined: the month has fewer. */
  before(
    request: Omit<VerifyChunk, "group" | "limit" | "toId"> & { readonly places: number },
  ): Promise<string | undefined>;
  /** In id order. */
  chunk(request: VerifyChunk): Promise<VerifiedMessage[]>;
  close(): Promise<void>;
}

/** Opens no connection before its first use. */
export function createVerifying(sql: QueueSql): Verifying {
  const room = openRoom(sql, {});
  return {
    async groups(topic) {
      return (await room.read(readGroups(topic))).map((row) => ({
        group: text(row, "group_id"),
        partition: integer(row, "partitionno"),
        beginId: text(row, "beginid"),
        nextId: text(row, "nextid"),
        round: integer(row, "round"),
      }));
    },
    async months(topic) {
      const dropped = (await room.read(droppedMonths(topic))).map((row) => integer(row, "month"));
      return (await room.months(topic)).filter((month) => !dropped.includes(month));
    },
    async before({ fromId, ...at }) {
      const [row] = await room.read(placesBefore({ ...at, id: fromId }));
      return row === undefined ? undefined : text(row, "id");
    },
    async chunk(request) {
      const messages: (Omit<VerifiedMessage, "records"> & { records: VerifiedRecord[] })[] = [];
      for (const row of await room.read(readChunk(request))) {
        const id = text(row, "id");
        let message = messages.at(-1);
        if (message?.id !== id) {
          message = { id, again: integer(row, "again") === 1, records: [] };
          messages.push(message);
        }
        if (textOrNull(row, "round") === null) continue;
        const lastId = textOrNull(row, "last_id");
        const batch = lastId === null ? undefined : { lastId, messages: integer(row, "messages") };
        message.records.push({ round: integer(row, "round"), batch });
      }
      return messages;
    },
    close: () => room.close(),
  };
}
