import type { OutgoingMessage, PublishResult } from "../broker.ts";
import { type AbortScope, orAborted } from "../publishing/abort-scope.ts";
import { byTopic } from "../publishing/by-topic.ts";
import { AGAIN, type Call, createCall, type Load } from "../publishing/call.ts";
import { failed } from "../publishing/failures.ts";
import { type PlacedMessage, startRequests } from "../publishing/lanes.ts";
import { ABORTED } from "../publishing/results.ts";
import type { Window } from "../publishing/window.ts";
import { receiptOf } from "./carry.ts";
import type { TopicDescription } from "./driver.ts";
import type { Failure } from "./failures.ts";
import { type Item, planLanes, type Request, requestsOf } from "./plan.ts";
import { isFailure, type OpenSession, type SendOutcome, type Sessions } from "./sessions.ts";
import type { Topics } from "./topics.ts";

export interface Publishing {
  readonly sessions: Sessions;
  readonly topics: Topics;
  readonly window: Window;
}

/** A leader is elected within tens of milliseconds. After all of these waits the topic is away. */
const MOVED_WAITS_MS: readonly number[] = [50, 100, 200, 400];

export async function publishBatch(
  publishing: Publishing,
  batch: readonly OutgoingMessage[],
  scope: AbortScope,
): Promise<PublishResult[]> {
  let gathered: Load<Item>[] = [];
  const call = createCall<Item>({
    count: batch.length,
    scope,
    window: publishing.window,
    // No `leave`: the session knows when it must no longer be used.
    carrier: (own) => {
      const sender = createSender(publishing, own, scope);
      const flush = (): void => {
        const loads = gathered;
        gathered = [];
        sender.send(loads).catch((error: unknown) => {
          for (const load of loads) own.settleBy(load, Promise.reject(error));
        });
      };
      return {
        hand(load) {
          if (gathered.push(load) === 1) queueMicrotask(flush);
          return undefined;
        },
      };
    },
  });
  await Promise.all(
    [...byTopic(batch)].map(([topic, messages]) => startTopic(publishing, call, topic, messages, scope)),
  );
  return await call.done;
}

async function startTopic(
  { topics }: Publishing,
  call: Call<Item>,
  topic: string,
  messages: readonly PlacedMessage[],
  scope: AbortScope,
): Promise<void> {
  const description = await look(topics, topic, scope);
  if (description === undefined) return;
  if (isFailure(description)) {
    if (description.scope === "connection") call.breakOff(description);
    for (const placed of messages) call.refuse(placed, topic, description);
    return;
  }
  for (const batches of planLanes(messages, description.leaders.length)) startRequests(call, topic, batches);
}

async function look(topics: Topics, topic: string, scope: AbortScope): Promise<TopicDescription | Failure | undefined> {
  const found = topics.find(topic);
  return found instanceof Promise ? await orAborted(found, scope) : found;
}

interface Sender {
  send(loads: readonly Load<Item>[]): Promise<void>;
}

function createSender({ sessions, topics }: Publishing, call: Call<Item>, scope: AbortScope): Sender {
  const moves = new Map<Load<Item>, number>();

  async function sendTogether(session: OpenSession, { leader, topic, loads }: Request): Promise<void> {
    const batches = loads.map(({ items }) => ({
      partition: items[0]?.partition ?? 0,
      records: items.map(({ record }) => record),
    }));
    const outcomes = await session.send(leader, topic, batches, scope);
    for (const [place, load] of loads.entries()) conclude(load, outcomes[place]);
  }

  function conclude(load: Load<Item>, outcome: SendOutcome | undefined): void {
    const { destination: topic, items } = load;
    if (outcome === undefined) return;
    if ("baseOffset" in outcome) {
      const { baseOffset } = outcome;
      call.settle(
        load,
        items.map(({ partition }, place) => receiptOf(topic, partition, baseOffset + BigInt(place))),
      );
      return;
    }
    const { failure } = outcome;
    if (failure.stale) {
      call.settleBy(load, followLeader(load, failure));
      return;
    }
    // The rest of this call waits for the next one, which tests the connection first.
    if (failure.scope === "unknown" && failure.endsSession) call.breakOff(CONNECTION_LOST);
    call.settle(load, failure);
  }

  /** Looks up the partition's leader. Its messages fail if it has moved too often. */
  async function followLeader(load: Load<Item>, failure: Failure): Promise<Failure | typeof ABORTED | typeof AGAIN> {
    const topic = load.destination;
    topics.forget(topic);
    const description = await look(topics, topic, scope);
    if (description === undefined) return ABORTED;
    if (isFailure(description)) return description;
    const moved = moves.get(load) ?? 0;
    const waitMs = MOVED_WAITS_MS[moved];
    if (waitMs === undefined) return { ...failure, scope: "destination" };
    moves.set(load, moved + 1);
    await orAborted(new Promise((resolve) => setTimeout(resolve, waitMs)), scope);
    return scope.aborted ? ABORTED : AGAIN;
  }

  return {
    async send(loads) {
      const session = await sessions.get(scope);
      if (session === undefined || isFailure(session)) {
        for (const load of loads) call.settle(load, session ?? ABORTED);
        return;
      }
      const requests = requestsOf(loads, topics.leaderOf);
      await Promise.all(requests.map((request) => sendTogether(session, request)));
    },
  };
}

const CONNECTION_LOST = failed("connection", "CONNECTION_LOST", "the connection broke before this message's turn");
