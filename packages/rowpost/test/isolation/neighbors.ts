/**
 * What the tests of isolation share: a broker whose topics can be ill, in memory and behind HTTP;
 * and what a relay reads of rows, by any statement that brings some.
 */
import { afterEach } from "vitest";
import type { Broker, OutgoingMessage, PublishResult } from "../../src/brokers/broker.ts";
import { http } from "../../src/brokers/http.ts";
import { memory } from "../../src/brokers/memory.ts";
import type { RelayStore } from "../../src/relay/store.ts";
import { type HttpReceiver, startHttpReceiver } from "../brokers/http-receiver.ts";

/** What becomes of a topic's messages. `hang`: no answer, until the topic is made well again. */
export type Health = "well" | "refuse" | "hang";

/** A broker with topics that can be ill. */
export interface Neighbors {
  readonly broker: Broker;
  /** For topics that are not named: well. Requests that hang are answered when it becomes well. */
  set(topic: string, health: Health): void;
  /** Keys that were accepted of a topic, each once, in order. */
  accepted(topic: string): readonly string[];
  /** Messages of a topic that were handed over and are not answered. */
  unanswered(topic: string): number;
  /** Messages of a topic that were handed over. */
  handed(topic: string): number;
  /** Bytes of bodies in publish calls that have not settled: now, and at most so far. */
  readonly bytes: { readonly now: number; readonly highest: number };
  /** Resolves when this many messages of a topic have been accepted. */
  untilAccepted(topic: string, count: number): Promise<void>;
}

export const KINDS = ["memory", "http"] as const;
export type Kind = (typeof KINDS)[number];

/** Ends a hang, and is no measure of speed. */
const LIMIT_MS = 60_000;

const receivers: HttpReceiver[] = [];
const brokers: Broker[] = [];
const ends: (() => void)[] = [];

/** To be called within a block of tests that makes neighbors. */
export function closeNeighborsAfterEach(): void {
  afterEach(async () => {
    for (const end of ends.splice(0)) end();
    for (const broker of brokers.splice(0)) await broker.close();
    for (const receiver of receivers.splice(0)) await receiver.close();
  });
}

/** What the topics do and have taken, the same behind both kinds of brokers. */
interface Topics {
  readonly handed: Map<string, number>;
  readonly set: (topic: string, health: Health) => void;
  /** What becomes of a message, once its topic does not hang. */
  readonly outcome: (topic: string, key: string) => Promise<"sent" | "refused">;
  readonly accepted: (topic: string) => readonly string[];
  readonly unanswered: (topic: string) => number;
  readonly untilAccepted: (topic: string, count: number) => Promise<void>;
}

function createTopics(): Topics {
  const healths = new Map<string, Health>();
  const accepted = new Map<string, Set<string>>();
  const handed = new Map<string, number>();
  const unanswered = new Map<string, number>();
  const released = new Map<string, Set<() => void>>();
  const watchers = new Set<() => void>();
  const acceptedOf = (topic: string): Set<string> => accepted.get(topic) ?? new Set();

  function release(topic: string): void {
    for (const go of released.get(topic) ?? []) go();
    released.delete(topic);
  }
  ends.push(() => {
    healths.clear();
    for (const topic of [...released.keys()]) release(topic);
  });

  return {
    handed,
    set(topic, health) {
      healths.set(topic, health);
      if (health !== "hang") release(topic);
    },
    async outcome(topic, key) {
      handed.set(topic, (handed.get(topic) ?? 0) + 1);
      if (healths.get(topic) === "hang") {
        unanswered.set(topic, (unanswered.get(topic) ?? 0) + 1);
        await new Promise<void>((go) => released.set(topic, (released.get(topic) ?? new Set()).add(go)));
        unanswered.set(topic, (unanswered.get(topic) ?? 0) - 1);
      }
      if (healths.get(topic) === "refuse") return "refused";
      accepted.set(topic, acceptedOf(topic).add(key));
      for (const watch of watchers) watch();
      return "sent";
    },
    accepted: (topic) => [...acceptedOf(topic)],
    unanswered: (topic) => unanswered.get(topic) ?? 0,
    untilAccepted(topic, count) {
      return new Promise((resolve, reject) => {
        const look = (): void => {
          if (acceptedOf(topic).size < count) return;
          clearTimeout(limit);
          watchers.delete(look);
          resolve();
        };
        const limit = setTimeout(() => {
          watchers.delete(look);
          reject(new Error(`${acceptedOf(topic).size} of ${count} messages of ${topic} arrived in ${LIMIT_MS} ms`));
        }, LIMIT_MS);
        watchers.add(look);
        look();
      });
    },
  };
}

async function brokerOf(kind: Kind, topics: Topics): Promise<Broker> {
  if (kind === "memory") {
    const refused: PublishResult = {
      status: "failed",
      scope: "destination",
      retriable: true,
      code: "BUSY",
      reason: "refused",
    };
    return memory({
      outcome: async ({ topic, key }) => ((await topics.outcome(topic, key)) === "refused" ? refused : undefined),
    });
  }
  const receiver = await startHttpReceiver((request, response) => {
    void topics
      .outcome(request.path.slice(1), String(request.headers["rowpost-key"]))
      .then((outcome) => response.writeHead(outcome === "sent" ? 204 : 429).end());
  });
  receivers.push(receiver);
  // Its own deadline is longer than a test: what hangs, hangs.
  return http({ urlByTopic: (topic) => `http://127.0.0.1:${receiver.port}/${topic}`, timeoutMs: 600_000 });
}

/** Makes a broker of this kind; closed after the test. */
export async function createNeighbors(kind: Kind): Promise<Neighbors> {
  const topics = createTopics();
  const broker = await brokerOf(kind, topics);
  brokers.push(broker);
  const bytes = { now: 0, highest: 0 };
  const weigh = (batch: readonly OutgoingMessage[]): number =>
    batch.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0);
  return {
    broker: {
      ...broker,
      async publish(batch, options) {
        const weight = weigh(batch);
        bytes.now += weight;
        bytes.highest = Math.max(bytes.highest, bytes.now);
        try {
          return await broker.publish(batch, options);
        } finally {
          bytes.now -= weight;
        }
      },
    },
    set: topics.set,
    accepted: topics.accepted,
    unanswered: topics.unanswered,
    handed: (topic) => topics.handed.get(topic) ?? 0,
    untilAccepted: topics.untilAccepted,
    bytes,
  };
}

/** What a relay has read of messages, by whatever method of its store. */
export interface Reads {
  /** Ids of messages that came back since `clear`, one for each time. */
  readonly ids: readonly string[];
  /** Most bytes of bodies that one call brought. */
  readonly mostBytes: number;
  clear(): void;
}

/** A change of a store that notes what it brings; for `RuleRelayOptions.store`. */
export function readsOf(): { readonly reads: Reads; readonly store: (store: RelayStore) => RelayStore } {
  let ids: string[] = [];
  let mostBytes = 0;

  function note(answer: unknown): void {
    if (!Array.isArray(answer)) return;
    let bytes = 0;
    for (const row of answer as unknown[]) {
      if (typeof row !== "object" || row === null) continue;
      if ("id" in row && typeof row.id === "string" && "topic" in row && "key" in row) ids.push(row.id);
      if ("body" in row && typeof row.body === "string") bytes += row.body.length;
    }
    mostBytes = Math.max(mostBytes, bytes);
  }

  function watched<Part extends object>(part: Part): Part {
    return new Proxy(part, {
      get(target, name, receiver) {
        const value: unknown = Reflect.get(target, name, receiver);
        if (name === "housekeeping" && typeof value === "object" && value !== null) return watched(value);
        if (typeof value !== "function") return value;
        return (...parameters: unknown[]): unknown => {
          const answer: unknown = Reflect.apply(value, target, parameters);
          if (answer instanceof Promise) answer.then(note, () => undefined);
          return answer;
        };
      },
    });
  }

  return {
    reads: {
      get ids() {
        return ids;
      },
      get mostBytes() {
        return mostBytes;
      },
      clear() {
        ids = [];
        mostBytes = 0;
      },
    },
    store: watched,
  };
}
