import { describeError } from "../../runtime/errors.ts";
import type { OutgoingMessage, PublishResult } from "../broker.ts";
import type { AbortScope } from "../publishing/abort-scope.ts";
import { byTopic } from "../publishing/by-topic.ts";
import { type Call, type Carrier, createCall } from "../publishing/call.ts";
import type { PlacedMessage } from "../publishing/lanes.ts";
import type { Window } from "../publishing/window.ts";
import { type Outcome, outcomesOf } from "./answers.ts";
import type { IoReply } from "./client.ts";
import type { LentConnection } from "./connections.ts";
import { type Failure, failure, notConnected } from "./failures.ts";
import type { Settings } from "./options.ts";
import { type Item, needsTransaction, type Piece, type PieceLimits, planTopic } from "./plan.ts";

export interface Publishing {
  readonly settings: Settings;
  readonly window: Window;
  readonly pieces: PieceLimits;
}

export async function publishBatch(
  publishing: Publishing,
  connection: LentConnection,
  batch: readonly OutgoingMessage[],
  scope: AbortScope,
): Promise<PublishResult[]> {
  const streams = new Map<string, string>();
  const call = createCall<Item>({
    count: batch.length,
    scope,
    window: publishing.window,
    carrier: (own) => carrierOn(publishing, connection, streams, own),
  });
  for (const [topic, messages] of byTopic(batch)) {
    const stream = streamOf(publishing, topic);
    if (typeof stream === "string") {
      streams.set(topic, stream);
      startTopic(publishing, connection, call, topic, messages);
    } else {
      for (const placed of messages) call.refuse(placed, topic, stream);
    }
  }
  try {
    return await call.done;
  } finally {
    connection.giveBack();
  }
}

function streamOf({ settings }: Publishing, topic: string): string | Failure {
  try {
    return settings.streamOf(topic);
  } catch (error) {
    return failure("TOPIC_INVALID", `streamOf("${topic}"): ${describeError(error)}`, { scope: "message" });
  }
}

function startTopic(
  { settings, pieces }: Publishing,
  { maxBulkBytes }: LentConnection,
  call: Call<Item>,
  topic: string,
  messages: readonly PlacedMessage[],
): void {
  const sizes = { maxBodyBytes: settings.maxBodyBytes, maxBulkBytes };
  const { lanes, refused } = planTopic(topic, messages, sizes, pieces);
  for (const { placed, failure: tooLarge } of refused) call.refuse(placed, topic, tooLarge);
  for (const first of lanes) call.start(first);
}

function carrierOn(
  { settings }: Publishing,
  connection: LentConnection,
  streams: ReadonlyMap<string, string>,
  call: Call<Item>,
): Carrier<Item> {
  const { minReplicas } = settings;
  const { client } = connection;

  function answered(piece: Piece, isTransaction: boolean, replies: readonly IoReply[]): void {
    const outcomes = outcomesOf(replies, { messages: piece.items.length, isTransaction, minReplicas });
    if (outcomes.some(saysReconnect)) connection.retire();
    call.settle(piece, outcomes);
  }

  return {
    hand(piece) {
      // Checked here, because ioredis reports this with the same error as commands lost after
      // writing.
      if (client.status !== "ready") {
        return notConnected("CONNECTION_LOST", `the connection to ${settings.label} broke before this message's turn`);
      }
      const isTransaction = needsTransaction(piece.items);
      write(connection, streams.get(piece.destination) ?? "", piece, { isTransaction, settings }).then(
        (replies) => answered(piece, isTransaction, replies),
        // ioredis refuses a pipeline as a whole before it writes any of it.
        (error: unknown) => call.settle(piece, notConnected("CONNECTION_LOST", describeError(error))),
      );
      return undefined;
    },
    leave() {
      connection.retire();
      return NO_ANSWER;
    },
  };
}

interface WriteOptions {
  readonly isTransaction: boolean;
  readonly settings: Settings;
}

function write(
  { client }: LentConnection,
  stream: string,
  { items }: Piece,
  { isTransaction, settings: { minReplicas, replicaTimeoutMs, xaddArguments } }: WriteOptions,
): Promise<readonly IoReply[]> {
  const pipeline = client.pipeline();
  if (isTransaction) pipeline.multi();
  for (const { fields } of items) pipeline.xadd(stream, ...xaddArguments, ...fields);
  // Adds EXEC; the call below sends.
  if (isTransaction) void pipeline.exec();
  if (minReplicas > 0) pipeline.wait(minReplicas, replicaTimeoutMs);
  return pipeline.exec();
}

function saysReconnect(outcome: Outcome): boolean {
  return typeof outcome === "object" && outcome.reconnect === true;
}

const NO_ANSWER: Failure = failure("NO_ANSWER", "no answer before the publish deadline", { scope: "unknown" });
