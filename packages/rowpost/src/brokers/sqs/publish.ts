/**
 * Publishes at most ten messages in a request, each with its own outcome. SQS may refuse one and
 * take the next, so a request holds one message of an ordering key and the next one waits for the
 * answer.
 */
import { grouped } from "../../runtime/grouped.ts";
import type { OutgoingMessage, PublishFailed, PublishResult } from "../broker.ts";
import type { AbortScope } from "../publishing/abort-scope.ts";
import { byTopic } from "../publishing/by-topic.ts";
import { AGAIN, type Call, createCall, type Load, type Outcome } from "../publishing/call.ts";
import { failed } from "../publishing/failures.ts";
import { type PlacedMessage, startRequests } from "../publishing/lanes.ts";
import { packedRequests } from "../publishing/packed-requests.ts";
import type { Window } from "../publishing/window.ts";
import { encode, type Wire } from "./carry.ts";
import type { BatchAnswer, SqsClient, SqsModule } from "./client.ts";
import { failureOf, outcomesOf } from "./failures.ts";
import type { Settings } from "./options.ts";
import type { Queues } from "./queues.ts";

export interface Publishing {
  readonly settings: Settings;
  readonly window: Window;
  readonly module: SqsModule;
  readonly client: SqsClient;
  readonly queues: Queues;
}

interface Item extends PlacedMessage, Wire {}

const MOST_ENTRIES = 10;
const UNANSWERED = failed("unknown", "DEADLINE", "no answer before the publish deadline");
const CLOSED = failed("unknown", "CLOSED", "the SQS broker was closed before the answer");

export async function publishBatch(
  publishing: Publishing,
  batch: readonly OutgoingMessage[],
  scope: AbortScope,
): Promise<PublishResult[]> {
  const { settings, window, module, client, queues } = publishing;
  const urls = new Map<string, string | PublishFailed>();

  async function find(topic: string, retry: () => void): Promise<void> {
    urls.set(topic, await queues.urlOf(topic));
    retry();
  }

  async function send(QueueUrl: string, { destination, items }: Load<Item>): Promise<Outcome | readonly Outcome[]> {
    const Entries = items.map(({ entry }, place) => ({ Id: String(place), ...entry }));
    // One for each request: older SDK versions leave their listener on the signal.
    const ending = new AbortController();
    const stopFollowing = scope.onAbort(() => ending.abort());
    try {
      const command = new module.SendMessageBatchCommand({ QueueUrl, Entries });
      const answer = await client.send(command, { abortSignal: ending.signal });
      return outcomesOf(answer as BatchAnswer, items.length);
    } catch (error) {
      const failure = failureOf(error, settings.label);
      if (failure.code === "QueueDoesNotExist") queues.forget(destination);
      return failure;
    } finally {
      stopFollowing();
    }
  }

  const call: Call<Item> = createCall<Item>({
    count: batch.length,
    scope,
    window,
    carrier: (own) => ({
      hand(load, retry) {
        const topic = load.destination;
        const url = urls.get(topic) ?? queues.known(topic);
        if (url === undefined) {
          void find(topic, retry);
          return AGAIN;
        }
        if (typeof url !== "string") return url;
        own.settleBy(load, send(url, load));
        return undefined;
      },
      leave: (_load, how) => (how === "closed" ? CLOSED : UNANSWERED),
    }),
  });
  for (const [topic, messages] of byTopic(batch)) {
    const name = queues.nameOf(topic);
    const ready: Item[] = [];
    for (const placed of messages) {
      const wire =
        typeof name === "string" ? encode(placed.message, name.endsWith(".fifo"), settings.maxMessageBytes) : name;
      if ("scope" in wire) call.refuse(placed, topic, wire);
      else ready.push({ ...placed, ...wire });
    }
    for (const lane of lanesOf(ready, settings.maxMessageBytes)) startRequests(call, topic, lane);
  }
  return await call.done;
}

function lanesOf(items: readonly Item[], bytes: number): Item[][][] {
  const most = { items: MOST_ENTRIES, bytes };
  const keys = grouped(
    items.filter(({ orderingKey }) => orderingKey !== undefined),
    ({ orderingKey }) => orderingKey,
  );
  const loose = packedRequests(
    items.filter(({ orderingKey }) => orderingKey === undefined),
    most,
  );
  const lanes = loose.map((request) => [request]);
  const chains = [...keys.values()];
  for (let from = 0; from < chains.length; from += MOST_ENTRIES) {
    const together = chains.slice(from, from + MOST_ENTRIES);
    const longest = Math.max(...together.map(({ length }) => length));
    const waves = Array.from({ length: longest }, (_, turn) => together.flatMap((chain) => chain[turn] ?? []));
    lanes.push(waves.flatMap((wave) => packedRequests(wave, most)));
  }
  return lanes;
}
