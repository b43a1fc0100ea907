/**
 * Random lives of messages: two relays, consumers, an operator and the archive work on the same
 * rows at once, as scripts that are made at random say. A trigger writes down each change of a
 * state, so that nothing is missed between two looks. Bound by lives.*.test.ts.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import type { MessageAdmin } from "../../src/admin/message-admin.ts";
import type { PublishResult } from "../../src/brokers/broker.ts";
import { messageType } from "../../src/message/message-type.ts";
import { MESSAGE_STATES, TRANSITIONS } from "../../src/message/states.ts";
import type { ConfirmationResult } from "../../src/outbox/confirmations.ts";
import { createOutbox, type Outbox } from "../../src/outbox/outbox.ts";
import type { Relay } from "../../src/relay/relay.ts";
import { LONGEST_RETRY_MS } from "../../src/runtime/backoff.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { DatabaseConflictError } from "../../src/runtime/errors.ts";
import type { ManualClock } from "../../src/testing/manual-clock.ts";
import { failure, type RuleBench, useRuleBench } from "../rules/rule-bench.ts";
import type { RelayTestService } from "./bench-database.ts";

const RETRY = { maxAttempts: 3, baseMs: 0, maxMs: 0, slowRetryEveryMs: 1, slowRetryForMs: 86_400_000 };
const ACTION = { author: "ann", reason: "by chance" };
const CONSUMERS = ["billing", "stock"] as const;
/** Deadlines that have passed as soon as somebody looks. */
const TYPES = [
  messageType("both", { topic: "t", retry: RETRY, confirm: { withinMs: 1, consumers: CONSUMERS } }),
  messageType("resend", { topic: "t", retry: RETRY, confirm: { withinMs: 1 } }),
  messageType("fail", { topic: "t", retry: RETRY, confirm: { withinMs: 1, onTimeout: "fail" } }),
  messageType("alert", { topic: "t", retry: RETRY, confirm: { withinMs: 1, onTimeout: "alert" } }),
];
const MESSAGES = TYPES.map(({ name }) => ({ type: name, key: name }));

/** What the broker says, by turns. */
const ANSWERS = {
  stored: undefined,
  refused: failure({}),
  never: failure({ retriable: false }),
  unknown: failure({ scope: "unknown" }),
} satisfies Record<string, PublishResult | undefined>;

type Consumer = (typeof CONSUMERS)[number];

/** Messages are meant by their place in {@link MESSAGES}. */
type Step =
  | { readonly act: "relay"; readonly which: 0 | 1 }
  | { readonly act: "later"; readonly ms: number }
  | {
      readonly act: "confirm" | "report";
      readonly messages: readonly number[];
      readonly consumers: readonly Consumer[];
    }
  | { readonly act: "suspend" | "resume" | "resend" | "archive"; readonly messages: readonly number[] };

/** Steps of one round are taken at once. */
interface Script {
  readonly rounds: readonly (readonly Step[])[];
  readonly answers: readonly (keyof typeof ANSWERS)[];
}

const some = fc.uniqueArray(fc.nat(MESSAGES.length - 1), { minLength: 1, maxLength: MESSAGES.length });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ act: fc.constant("relay" as const), which: fc.constantFrom(0, 1) }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant("later" as const), ms: fc.integer({ min: 1, max: 120_000 }) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      act: fc.constantFrom("confirm" as const, "confirm" as const, "report" as const),
      messages: some,
      consumers: fc.subarray([...CONSUMERS], { minLength: 1 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      act: fc.constantFrom("suspend" as const, "resume" as const, "resend" as const, "archive" as const),
      messages: some,
    }),
  },
);
const script: fc.Arbitrary<Script> = fc.record({
  rounds: fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { minLength: 3, maxLength: 12 }),
  answers: fc.array(fc.constantFrom<keyof typeof ANSWERS>("stored", "stored", "refused", "never", "unknown"), {
    minLength: 1,
    maxLength: 8,
  }),
});

interface Parts {
  readonly bench: RuleBench;
  readonly relays: readonly [Relay, Relay];
  /** Of each consumer: processes of their own. */
  readonly outboxes: Readonly<Record<Consumer, Outbox>>;
  readonly admin: MessageAdmin;
}

/** What consumers were told, by the name of the message. */
type Told = Map<string, Set<Consumer>>;

/** Defines the case. */
export function defineLivesCases(service: RelayTestService, runs: number): void {
  const bench = useRuleBench(service);

  it("makes only legal transitions, and loses no confirmation and no message", async () => {
    for (const text of triggers(service)) await bench.database.sql(text);
    let answers: Script["answers"] = ["stored"];
    let published = 0;
    const relay = () =>
      bench.relay({
        broker: { outcome: () => ANSWERS[answers[published++ % answers.length] ?? "stored"] },
        relay: { types: TYPES, clock: turnedByPauses(bench.clock) },
      }).relay;
    const parts: Parts = {
      bench,
      relays: [relay(), relay()],
      outboxes: { billing: outboxOf(bench), stock: outboxOf(bench) },
      admin: adminOf(bench),
    };
    const made = new Set<string>();
    try {
      await fc.assert(
        fc.asyncProperty(script, async (given) => {
          answers = given.answers;
          published = 0;
          // A life that failed left its rows, and the script is made smaller on empty tables.
          await forget(bench);
          const told = await live(parts, given);
          await judge(bench, told);
          for (const { from, to } of await transitions(bench.database)) made.add(`${from}>${to}`);
        }),
        { numRuns: runs },
      );
    } finally {
      await parts.admin.close();
    }
    // Of 15 that there are here; fewer would mean that the scripts went quiet ways only.
    expect(made.size).toBeGreaterThanOrEqual(12);
  }, 600_000);
}

/**
 * A settle that finds its row locked waits by the clock, and the tick waits for it: a pause turns
 * the clock itself, since no other step has to do so meanwhile.
 */
function turnedByPauses(clock: ManualClock): Clock {
  return {
    ...clock,
    sleep(ms, signal) {
      const slept = clock.sleep(ms, signal);
      if (ms <= LONGEST_RETRY_MS) void clock.advance(ms);
      return slept;
    },
  };
}

function outboxOf({ database }: RuleBench): Outbox {
  return createOutbox({ database: database.connect(), types: TYPES });
}

function adminOf({ database }: RuleBench): MessageAdmin {
  const own = database.connect();
  return own.messageAdmin({ layout: own.defaultLayout });
}

async function live(parts: Parts, { rounds }: Script): Promise<Told> {
  const { bench, relays } = parts;
  const told: Told = new Map();
  await bench.database.insert(MESSAGES);
  for (const round of rounds) await Promise.all(round.map((each) => take(parts, each, told)));
  for (const relay of relays) await relay.tick();
  return told;
}

async function take({ bench, relays, outboxes, admin }: Parts, given: Step, told: Told): Promise<void> {
  if (given.act === "relay") {
    await relays[given.which].tick();
    return;
  }
  if (given.act === "later") return await bench.clock.advance(given.ms);
  const messages = given.messages.flatMap((index) => MESSAGES[index] ?? []);
  if (given.act === "confirm" || given.act === "report") {
    const error = given.act === "report" ? "no such customer" : undefined;
    await Promise.all(
      given.consumers.map(async (consumer) => {
        const results = await outboxes[consumer].confirm(messages.map((message) => ({ ...message, consumer, error })));
        if (error === undefined) note(told, messages, consumer, results);
      }),
    );
    return;
  }
  for (const message of messages) {
    const target = { filter: message, action: ACTION, limit: 1 };
    await byHand(() => {
      if (given.act === "suspend") return admin.suspend(target);
      if (given.act === "resume") return admin.resume(target);
      if (given.act === "resend") return admin.retry({ ...target, resend: true });
      return admin.remove({ ...target, mode: "archive" });
    });
  }
}

function note(
  told: Told,
  messages: readonly { readonly type: string }[],
  consumer: Consumer,
  results: readonly ConfirmationResult[],
): void {
  for (const [index, { type }] of messages.entries()) {
    expect(["consumed", "waiting"]).toContain(results[index]?.status);
    told.set(type, (told.get(type) ?? new Set()).add(consumer));
  }
}

/** The server may end one of two transactions that wait for each other; a person tries again. */
async function byHand(change: () => Promise<unknown>): Promise<void> {
  await change().catch((error: unknown) => {
    if (!(error instanceof DatabaseConflictError)) throw error;
  });
}

async function judge({ database }: RuleBench, told: Told): Promise<void> {
  const rows = await database.sql(
    "SELECT message_type AS type, state AS state FROM local_message UNION ALL SELECT message_type, state FROM local_message_archive",
  );
  expect(rows.map(({ type }) => String(type)).sort()).toEqual(MESSAGES.map(({ type }) => type).sort());
  for (const row of rows) {
    const type = String(row["type"]);
    const confirmed = told.get(type)?.size ?? 0;
    const isConsumed = MESSAGE_STATES[Number(row["state"])] === "consumed";
    expect({ type, isConsumed }).toEqual({ type, isConsumed: confirmed >= (type === "both" ? 2 : 1) });
  }
  for (const { from, to } of await transitions(database)) {
    const legal = TRANSITIONS.some((each) => each.to === to && each.from.some((state) => state === from));
    expect({ from, to, legal }).toEqual({ from, to, legal: true });
  }
}

async function transitions(database: RuleBench["database"]) {
  const rows = await database.sql("SELECT was AS was, became AS became FROM lives ORDER BY id");
  return rows.map((row) => ({
    from: MESSAGE_STATES[Number(row["was"])],
    to: MESSAGE_STATES[Number(row["became"])],
  }));
}

/** Empties the tables for the next life. */
async function forget({ database }: RuleBench): Promise<void> {
  for (const table of ["lives", "local_message", "local_message_archive", "local_message_confirmation"]) {
    await database.sql(`DELETE FROM ${table}`);
  }
}

/** Each change of a state becomes a row of the table `lives`, in the transaction that makes it. */
function triggers(service: RelayTestService): string[] {
  const tables = ["local_message", "local_message_archive"];
  const write = "INSERT INTO lives (was, became) VALUES (OLD.state, NEW.state)";
  if (service === "postgres") {
    return [
      "CREATE TABLE lives (id BIGSERIAL PRIMARY KEY, was INTEGER NOT NULL, became INTEGER NOT NULL)",
      `CREATE FUNCTION write_life() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${write}; RETURN NULL; END $$`,
      ...tables.map(
        (table) =>
          `CREATE TRIGGER lives_of_${table} AFTER UPDATE ON ${table} FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION write_life()`,
      ),
    ];
  }
  if (service === "sqlite") {
    return [
      "CREATE TABLE lives (id INTEGER PRIMARY KEY, was INTEGER NOT NULL, became INTEGER NOT NULL)",
      ...tables.map(
        (table) =>
          `CREATE TRIGGER lives_of_${table} AFTER UPDATE ON ${table} WHEN OLD.state <> NEW.state BEGIN ${write}; END`,
      ),
    ];
  }
  return [
    "CREATE TABLE lives (id BIGINT AUTO_INCREMENT PRIMARY KEY, was INTEGER NOT NULL, became INTEGER NOT NULL)",
    ...tables.map(
      (table) =>
        `CREATE TRIGGER lives_of_${table} AFTER UPDATE ON ${table} FOR EACH ROW BEGIN IF OLD.state <> NEW.state THEN ${write}; END IF; END`,
    ),
  ];
}
