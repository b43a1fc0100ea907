/**
 * The contract suite is itself tested: adapters that break one rule each, made of the real ones,
 * must fail the case that stands for the rule. A case that no broken adapter fails would prove
 * nothing about the others.
 */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Broker, OutgoingMessage, PublishOptions, PublishResult } from "../../src/brokers/broker.ts";
import type { BrokerHarness } from "../../src/testing/index.ts";
import { brokerContract, runBrokerCase, runBrokerContract } from "../../src/testing/index.ts";
import { httpHarness, memoryHarness } from "./harnesses.ts";

/** What a mutation may use of the adapter that it breaks. */
interface Sound {
  readonly publish: (batch: readonly OutgoingMessage[], options: PublishOptions) => Promise<PublishResult[]>;
  readonly close: () => Promise<void>;
}
type Mutation = (sound: Sound) => Partial<Broker>;
/**
 * The rule that it breaks, how, the beginning of the name of the case that must fail, and what that
 * case then says.
 */
type Mutant = readonly [rule: string, mutation: Mutation, failing: string, complaint: RegExp];

/** Lets the batch through changed, and gives the results back as they are. */
function changing(change: (message: OutgoingMessage) => OutgoingMessage): Mutation {
  return ({ publish }) => ({ publish: (batch, options) => publish(batch.map(change), options) });
}

/** Changes results. */
function answering(change: (result: PublishResult) => PublishResult): Mutation {
  return ({ publish }) => ({ publish: async (batch, options) => (await publish(batch, options)).map(change) });
}

const lie: PublishResult = { status: "sent", messageId: "lie" };
const gone: PublishResult = { status: "failed", scope: "connection", retriable: true, code: "GONE", reason: "gone" };

function eachAlone({ publish }: Sound): Partial<Broker> {
  return {
    async publish(batch, options) {
      const results = await Promise.all(batch.map((message) => publish([message], options)));
      return results.flat();
    },
  };
}

/** On the memory broker: rules that need no fault. */
const memoryMutants: readonly Mutant[] = [
  [
    "features are true",
    () => ({ features: { ...memoryHarness().features, reportsUnknownTopic: false } }),
    "the adapter says of itself",
    /reportsUnknownTopic: false/,
  ],
  [
    "headers arrive",
    changing((m) => ({ ...m, headers: { ...m.headers, tenant: "red" } })),
    "a message arrives with its body",
    /header tenant/,
  ],
  ["topics are kept apart", changing((m) => ({ ...m, topic: "orders" })), "a batch arrives whole", /60 !== 40/],
  [
    "messages are sent once",
    ({ publish }) => ({ publish: async (b, o) => [...(await publish([...b, ...b], o)).slice(0, b.length)] }),
    "a batch arrives whole",
    /80 !== 40/,
  ],
  [
    "one result each",
    answeringAll((results) => results.slice(1)),
    "a batch arrives whole",
    /one result for each message/,
  ],
  ["calls run side by side", oneAtATime, "calls that run side by side", /GONE/],
  [
    "no batch, no result",
    answeringAll((results) => (results.length === 0 ? [lie] : results)),
    "an empty batch",
    /one result for each message/,
  ],
  [
    "bytes stay bytes",
    changing((m) => (typeof m.body === "string" ? m : { ...m, body: Buffer.from(m.body).toString() })),
    "a binary body",
    /length of the body/,
  ],
  [
    "views are views",
    changing((m) => (typeof m.body === "string" ? m : { ...m, body: new Uint8Array(m.body.buffer) })),
    "a binary body",
    /length of the body/,
  ],
  [
    "text is UTF-8",
    changing((m) => (typeof m.body === "string" ? { ...m, body: Buffer.from(m.body, "latin1") } : m)),
    "Chinese, emoji",
    /length of the body/,
  ],
  [
    "headers are kept whole",
    changing((m) => ({ ...m, headers: trimmed(m.headers) })),
    "headers that the protocol cannot carry",
    /header note/,
  ],
  [
    "an empty body stays empty",
    changing((m) => (m.body === "" ? { ...m, body: "{}" } : m)),
    "an empty body",
    /length of the body/,
  ],
  [
    "big bodies are whole",
    changing((m) => ({ ...m, body: m.body.slice(0, 50_000) })),
    "a big body",
    /length of the body/,
  ],
  [
    "the identity is the same",
    changing((m) => ({ ...m, headers: { ...m.headers, "rowpost-id": `${m.key}-${m.attempt}` } })),
    "a second attempt",
    /contract.checked:/,
  ],
  [
    "a key keeps its order",
    ({ publish }) => ({ publish: async (b, o) => (await publish([...b].reverse(), o)).reverse() }),
    "20 ordering keys",
    /order of key/,
  ],
  ["a failure stops its key", eachAlone, "a failing message stops", /follows a failed one of its ordering key/],
  [
    "results are in order",
    ({ publish }) => ({ publish: async (b, o) => (await publish(b, o)).reverse() }),
    "results stand in the order",
    /BODY_TOO_LARGE/,
  ],
  [
    "the limit is in bytes",
    answering((r) => (r.status === "failed" && r.code === "BODY_TOO_LARGE" ? { ...r, retriable: true } : r)),
    "a body above the limit",
    /retriable:/,
  ],
  [
    "an unknown topic is the message's",
    answering((r) => (r.status === "failed" && r.code === "TOPIC_NOT_FOUND" ? { ...r, scope: "connection" } : r)),
    "an unknown topic",
    /a failure of the message/,
  ],
  [
    "aborted means not started",
    ({ publish }) => ({ publish: (b) => publish(b, { signal: new AbortController().signal }) }),
    "a call that is aborted",
    /strictly deep-equal/,
  ],
  ["check resolves", () => ({ check: () => Promise.reject(new Error("no server")) }), "check resolves", /no server/],
  ["close can be repeated", closingOnce, "close can be called twice", /closed already/],
  ["closed is closed", () => ({ close: async () => undefined }), "a publish after close", /not handed over/],
  ["nothing is left", leakingTimer, "close leaves no timer", /left behind after close/],
];

/** On the HTTP broker behind its proxy: rules about faults. */
const httpMutants: readonly Mutant[] = [
  ["silence is unknown", scoped("unknown", "connection"), "when the server falls silent", /the first was handed over/],
  [
    "silence is no receipt",
    answering((r) => (r.status === "failed" && r.scope === "unknown" ? lie : r)),
    "a call whose connection never",
    /strictly unequal/,
  ],
  [
    "the deadline is kept",
    ({ publish }) => ({ publish: (b) => publish(b, { signal: new AbortController().signal }) }),
    "when the server falls silent",
    /did not settle after its deadline/,
  ],
  [
    "away is the connection's",
    scoped("connection", "message"),
    "while the server is away",
    /notices that the server is away/,
  ],
  ["cut is unknown", scoped("unknown", "connection"), "a message whose connection breaks", /it may be stored/],
  ["a restart is survived", onceBroken, "a restart of the server", /20 of 20 messages not sent/],
  [
    "check tells that it is away",
    () => ({ check: async () => undefined }),
    "check rejects with advice when the server",
    /check rejects with a BrokerError/,
  ],
  [
    "check tells of credentials",
    () => ({ check: async () => undefined }),
    "check rejects with advice when the credentials",
    /check rejects with a BrokerError/,
  ],
  [
    "close ends calls",
    () => ({ close: async () => undefined }),
    "close ends the calls",
    /for calls that cannot end by themselves/,
  ],
  [
    "close is short",
    ({ close }) => ({
      async close() {
        await delay(3_000);
        await close();
      },
    }),
    "close says goodbye",
    /a relay that stops does not wait longer/,
  ],
];

function answeringAll(change: (results: PublishResult[]) => PublishResult[]): Mutation {
  return ({ publish }) => ({ publish: async (batch, options) => change(await publish(batch, options)) });
}

function scoped(from: "unknown" | "connection", to: "connection" | "message"): Mutation {
  return answering((result) =>
    result.status === "failed" && result.scope === from ? { ...result, scope: to } : result,
  );
}

function trimmed(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.trim()]));
}

function closingOnce({ close }: Sound): Partial<Broker> {
  let closed = false;
  return {
    async close() {
      if (closed) throw new Error("closed already");
      closed = true;
      await close();
    },
  };
}

/** Has room for one call, as an adapter does that keeps a call's state in its own. */
function oneAtATime({ publish }: Sound): Partial<Broker> {
  let busy = false;
  return {
    async publish(batch, options) {
      if (busy) return batch.map(() => gone);
      busy = true;
      await Promise.resolve();
      const results = await publish(batch, options);
      busy = false;
      return results;
    },
  };
}

function leakingTimer(): Partial<Broker> {
  leaked.push(setInterval(() => undefined, 60_000));
  return {};
}

/** Fails for good after its first failure, as an adapter does that never connects again. */
function onceBroken({ publish }: Sound): Partial<Broker> {
  let broken = false;
  return {
    async publish(batch, options) {
      const results = broken ? batch.map(() => gone) : await publish(batch, options);
      broken ||= published > 0;
      published += 1;
      return results;
    },
  };
}

let published = 0;
const leaked: NodeJS.Timeout[] = [];
afterAll(() => {
  for (const timer of leaked) clearInterval(timer);
});

function mutated(harness: BrokerHarness, mutation: Mutation): BrokerHarness {
  const mutate = (broker: Broker): Broker => {
    const sound: Sound = { publish: (batch, options) => broker.publish(batch, options), close: () => broker.close() };
    return { ...broker, ...mutation(sound) };
  };
  const { createUnauthorized } = harness;
  return {
    ...harness,
    consumeWithinMs: 5_000,
    recoverWithinMs: 1_000,
    createBroker: async () => mutate(await harness.createBroker()),
    createUnauthorized: createUnauthorized && (async () => mutate(await createUnauthorized())),
  };
}

async function expectFailure(harness: BrokerHarness, failing: string, complaint: RegExp): Promise<void> {
  const contractCase = brokerContract.find(({ name }) => name.startsWith(failing));
  if (contractCase === undefined) throw new Error(`no case begins with "${failing}"`);
  await expect(runBrokerCase(contractCase, harness)).rejects.toThrow(complaint);
}

describe("a broken adapter is found", () => {
  test.each(memoryMutants)("%s", (_rule, mutation, failing, complaint) =>
    expectFailure(mutated(memoryHarness(), mutation), failing, complaint),
  );

  describe("with faults", () => {
    let harness: BrokerHarness | undefined;
    beforeAll(async () => {
      harness = await httpHarness();
    });
    afterAll(() => harness?.close?.());
    test.each(httpMutants)("%s", async (_rule, mutation, failing, complaint) => {
      published = 0;
      if (harness !== undefined) await expectFailure(mutated(harness, mutation), failing, complaint);
    });
  });

  test("every case has a broken adapter that fails it", () => {
    const covered = [...memoryMutants, ...httpMutants].map(([, , failing]) => failing);
    const uncovered = brokerContract
      .map(({ name }) => name)
      .filter((name) => !covered.some((failing) => name.startsWith(failing)));
    expect(uncovered).toEqual([]);
  });
});

describe("runBrokerContract", () => {
  test("reports what passed, failed and was skipped, with reasons, and prints a line for each", async () => {
    const lines: string[] = [];
    const harness = mutated(memoryHarness(), () => ({ check: () => Promise.reject(new Error("no server")) }));
    const report = await runBrokerContract(harness, { print: (line) => lines.push(line) });
    expect(report.failed.map(({ name, error }) => [name, String(error)])).toEqual([
      ["check resolves when the server can be used", "Error: no server"],
    ]);
    expect(report.passed.length + report.failed.length + report.skipped.length).toBe(brokerContract.length);
    expect(report.skipped.every(({ reason }) => reason.length > 10)).toBe(true);
    expect(lines).toHaveLength(brokerContract.length);
    expect(lines.filter((line) => line.startsWith("FAIL"))).toHaveLength(1);
  });

  test("a feature that is claimed without a topic to try it on is a failure, not a skip", async () => {
    const whole = memoryHarness();
    const { unknown: _left, ...topics } = whole.topics;
    const report = await runBrokerContract({ ...whole, topics }, { print: () => undefined });
    expect(report.failed.map(({ error }) => String(error))).toEqual([expect.stringContaining("topics.unknown")]);
  });
});
