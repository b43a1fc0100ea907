/** Alerts over real databases, told to a channel that checks what it gets. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createMetricsRegistry, createOutbox, type Database, type MetricsRegistry, migrate } from "rowpost";
import { verifyWebhook } from "rowpost/http";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createChannel } from "../src/alerts/channels/send.ts";
import { createEvaluator, type Evaluator } from "../src/alerts/evaluator.ts";
import { RULE_DEFAULTS } from "../src/alerts/rules.ts";
import { type AlertDatabase, describeDatabases } from "./alert-bench.ts";

const SECRET = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0";
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };
const { failed } = RULE_DEFAULTS;

function ignore(): void {}

function cases(create: () => Promise<AlertDatabase>): void {
  let database: Database;
  let drop: () => Promise<void>;
  let server: Server;
  let told: { readonly id: string; readonly title: string }[];
  let answers: number[];
  let open: Evaluator[];
  let nowMs: number;
  let puts: number;
  let metrics: MetricsRegistry;

  beforeEach(async () => {
    const made = await create();
    database = made.database;
    drop = () => made.drop();
    await migrate(database, { layout: database.defaultLayout });
    [told, answers, open, nowMs, puts] = [[], [], [], 0, 0];
    metrics = createMetricsRegistry();
    server = createServer((request, response) => {
      let body = "";
      request.on("data", (part) => {
        body += String(part);
      });
      request.on("end", () => {
        const isSigned = verifyWebhook({ secret: SECRET, headers: request.headers, body });
        const status = isSigned ? (answers.shift() ?? 200) : 401;
        if (status === 200) told.push({ id: String(request.headers["webhook-id"]), title: JSON.parse(body).title });
        response.writeHead(status).end();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });

  afterEach(async () => {
    await Promise.all(open.map((each) => each.close()));
    server.closeAllConnections();
    server.close();
    await database.close();
    await drop();
  });

  function evaluator(of: Database = database): Evaluator {
    const monotonicMs = (): number => nowMs;
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const config = {
      ...({ name: "hook", type: "webhook", url, secret: SECRET, keyword: undefined } as const),
      ...({ language: "en", from: "info" } as const),
    };
    const made = createEvaluator({
      name: "main",
      database: of,
      layout: of.defaultLayout,
      rules: { failed },
      logger: SILENT,
      metrics,
      monotonicMs,
      channels: [createChannel({ config, consoleUrl: undefined, secrets: [], monotonicMs })],
    });
    open.push(made);
    return made;
  }

  /** Dies without giving up its lease, as far as the database can tell once that is over. */
  async function expireLease(): Promise<void> {
    await sql("UPDATE local_message_alert SET lease_until = NULL, owner = NULL");
  }

  async function sql(text: string): Promise<void> {
    const session = await database.connect({ purpose: "tool" });
    await session.run({ name: "test", text, params: [] });
    await session.close();
  }

  async function fail(count: number): Promise<void> {
    puts += 1;
    const outbox = createOutbox({ database });
    const messages = Array.from({ length: count }, (_, index) => ({
      type: "t",
      key: `${puts}-${index}`,
      topic: "orders",
      body: {},
    }));
    await outbox.transaction((tx) => outbox.enqueue(tx, messages));
    await sql("UPDATE local_message SET state = 3");
  }

  async function turns(of: Evaluator, count: number): Promise<void> {
    for (let turn = 0; turn < count; turn += 1) {
      nowMs += 15_000;
      await of.turn();
    }
  }

  test("a storm of 500 failures in one topic is two notices at most, and its end is told", async () => {
    const only = evaluator();
    await turns(only, 1);
    for (let burst = 0; burst < 5; burst += 1) {
      await fail(100);
      await turns(only, 1);
    }
    await turns(only, 20);
    expect(told.length).toBeGreaterThan(0);
    expect(told.length).toBeLessThanOrEqual(2);
    const before = told.length;
    await sql("UPDATE local_message SET state = 0");
    await turns(only, 12);
    expect(told.length - before).toBe(1);
    expect(told.at(-1)?.title).toContain("over: ");
  });

  test("a restart repeats nothing, and of two evaluators one tells", async () => {
    const first = evaluator();
    await turns(first, 1);
    await fail(1);
    await turns(first, 3);
    expect(told).toHaveLength(1);
    const counted = () => metrics.value("rowpost_alerts", { source: "main", rule: "failed", state: "firing" });
    expect(counted()).toBe(1);
    const second = evaluator();
    expect(await second.turn()).toBeUndefined();
    // Who does not evaluate says so: the highest of all processes is right.
    expect(counted()).toBe(0);
    await first.close();
    open.splice(open.indexOf(first), 1);
    await turns(second, 3);
    expect(told).toHaveLength(1);
  });

  test("what is pending when its evaluator dies is told by the next one", async () => {
    const first = evaluator();
    await turns(first, 1);
    await fail(1);
    await turns(first, 1);
    answers = [503];
    await turns(first, 1);
    expect(told).toHaveLength(0);
    expect(metrics.value("rowpost_alert_send_failures_total", { channel: "hook" })).toBe(1);
    await expireLease();
    const second = evaluator();
    await second.turn();
    // The wait after the first attempt counts on with the next one.
    await turns(second, 3);
    expect(told).toHaveLength(1);
    await turns(second, 4);
    expect(told).toHaveLength(1);
  });

  test("one who has lost the lease writes nothing", async () => {
    const layout = { layout: database.defaultLayout };
    const [left, right] = [database.alerts(layout), database.alerts(layout)];
    const lease = { leaseMs: 60_000 };
    expect(await left.take({ ...lease, owner: "a".repeat(36) })).toBeDefined();
    expect(await right.take({ ...lease, owner: "b".repeat(36) })).toBeUndefined();
    await expireLease();
    expect(await right.take({ ...lease, owner: "b".repeat(36) })).toBeDefined();
    expect(await left.save({ ...lease, owner: "a".repeat(36), state: "{}" })).toBe(false);
    expect(await right.save({ ...lease, owner: "b".repeat(36), state: "{}" })).toBe(true);
    expect(await right.late({ unconfirmedMs: 1_000, sendingMs: 1_000 })).toEqual({ unconfirmed: [], sending: [] });
    const action = { author: "ann", reason: "ticket 7", via: "cli" };
    const id = await right.silence({ rule: "failed", subject: "orders", forMs: 60_000, action });
    expect(await right.silences()).toMatchObject([{ id, rule: "failed", subject: "orders", active: true }]);
    expect([await right.endSilence({ id, action }), await right.endSilence({ id, action })]).toEqual([true, false]);
    await Promise.all([left.close(), right.close()]);
  });
}

describeDatabases("alerts", cases);
