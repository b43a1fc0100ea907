/** Reads the facts for the explanation of a message. Each statement reads few rows. */
import type { Explanation, MessageSummary } from "../../../admin/message-admin.ts";
import { changesOf } from "../by-hand/changes-by-hand.ts";
import { integer, keyQueueRow, relayStatus, suspensionRule, text } from "../rows.ts";
import type { DialectStatements } from "../statements.ts";
import { explain, frontId } from "./explanation.ts";
import type { MessageSearch } from "./search.ts";
import { placeOf } from "./statements.ts";
import { type MessageStatusParts, usedLeases } from "./status.ts";

export interface MessageExplainParts extends Omit<MessageStatusParts, "statements"> {
  readonly statements: Pick<DialectStatements, "leases" | "relay" | "table">;
  readonly search: Pick<MessageSearch, "summaries">;
}

export async function explainMessage(parts: MessageExplainParts, message: MessageSummary): Promise<Explanation> {
  const { read, search, statements } = parts;
  const { leases, relay, table } = statements;
  const { archived, id, orderingKey, state } = message;
  const relays = (await read(leases.readReports())).map(relayStatus);
  const [place] = archived ? [] : await read(placeOf(table, id));
  const failedBlocks = !relays.some((each) => each.alive && each.report?.onFailed === "skip");
  const isQueued = state === "pending" && typeof orderingKey === "string" && message.behindId === undefined;
  const keyQueue = isQueued
    ? (await read(relay.keyQueues({ keys: [{ orderingKey, upToId: id }], failedBlocks }))).map((row) =>
        keyQueueRow(table.layout, row),
      )
    : [];
  const front = frontId(message, keyQueue);
  return explain({
    message,
    now: place === undefined ? message.gmtModified : text(place, "clock"),
    dueInMs: place === undefined || place["due_in_ms"] === null ? null : integer(place, "due_in_ms"),
    deliverInMs: place === undefined || place["deliver_in_ms"] === null ? null : integer(place, "deliver_in_ms"),
    shard: place === undefined ? 0 : integer(place, "shard"),
    keyQueue,
    front: front === undefined ? undefined : (await search.summaries([{ id: front }], false))[0],
    leases: usedLeases(await read(leases.readEveryLease()), relays),
    relays,
    suspensions: (await read(leases.readSuspensions())).map(suspensionRule),
    changes: state === "suspended" ? await changesOf({ read, table }, id) : [],
  });
}
