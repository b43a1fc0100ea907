/** What the detector reads, on any SQL database. */
import type { VerifiedMessage, VerifiedRecord, VerifyStore } from "../../../queue/verifying/store.ts";
import type { Statement } from "../../../transactions/executor.ts";
import { integer, type Row, text, textOrNull } from "../rows.ts";
import { createSessionSlots } from "../session-slots.ts";
import type { ConsumptionParts } from "./consumption-store.ts";
import { monthsOfTables } from "./names.ts";

export function createVerifyStore({
  connect,
  sharedSession,
  statements,
}: Pick<ConsumptionParts, "connect" | "sharedSession" | "statements">): VerifyStore {
  const slots = createSessionSlots({
    proveLost: false,
    shared: sharedSession,
    connect: () => connect({ purpose: "relay" }),
  });
  const read = async (statement: Statement): Promise<readonly Row[]> =>
    (await slots.retry("scan", (session) => session.run(statement))).rows;
  return {
    async groups(topic) {
      return (await read(statements.verify.readGroups(topic))).map((row) => ({
        group: text(row, "group_id"),
        partition: integer(row, "partitionno"),
        beginId: text(row, "beginid"),
        nextId: text(row, "nextid"),
        round: integer(row, "round"),
      }));
    },
    async months(topic) {
      const dropped = (await read(statements.search.droppedMonths(topic))).map((row) => integer(row, "month"));
      const tables = monthsOfTables(topic, await read(statements.topics.monthTables(topic)));
      return tables.filter((month) => !dropped.includes(month));
    },
    async before({ topic, month, partition, fromId, places }) {
      const [row] = await read(statements.rewind.placesBefore(topic, { month, partition, id: fromId, places }));
      return row === undefined ? undefined : text(row, "id");
    },
    async chunk(request) {
      const messages: (Omit<VerifiedMessage, "records"> & { records: VerifiedRecord[] })[] = [];
      for (const row of await read(statements.verify.readChunk(request))) {
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
    close: () => slots.close(),
  };
}
