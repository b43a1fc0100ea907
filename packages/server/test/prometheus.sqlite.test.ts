/**
 * The dashboard and the rules of ops/: as promtool reads them, and as a relay and a console
 * measure.
 */
import { execFile, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createMetricsRegistry, createOutbox, createRelay, memory, type PublishResult } from "rowpost";
import { createInbox } from "rowpost/inbox";
import { createQueue } from "rowpost/queue";
import { sqlite } from "rowpost/sqlite";
import { afterEach, expect, test } from "vitest";
import { parse } from "yaml";
import { describeUnlessMissing } from "../../rowpost/test/services.ts";
import { createChannel } from "../src/alerts/channels/send.ts";
import { createEvaluator } from "../src/alerts/evaluator.ts";
import { RULE_DEFAULTS } from "../src/alerts/rules.ts";
import { createConfirmEndpoint } from "../src/confirm-endpoint.ts";
import { serveHealth } from "../src/health-server.ts";
import { listen } from "../src/http-listen.ts";
import { temporaryFile } from "./command.ts";
import { type ConsoleBench, openConsole } from "./console.ts";

const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };
const closers: (() => Promise<unknown>)[] = [];

function ignore(): void {}

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function pathOf(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}

interface RulesFile {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[];
}
interface CasesFile {
  readonly tests: readonly {
    readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly unknown[] }[];
  }[];
}
interface Dashboard {
  readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[];
  readonly templating: { readonly list: readonly { readonly definition?: string }[] };
}

const RULES = pathOf("../ops/prometheus-rules.yaml");
const CASES = pathOf("prometheus-rules.yaml");
const rules = (parse(readFileSync(RULES, "utf8")) as RulesFile).groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(readFileSync(pathOf("../ops/grafana-dashboard.json"), "utf8")) as Dashboard;
const asked = [
  ...rules.map(({ expr }) => expr),
  ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
  ...dashboard.templating.list.flatMap(({ definition = "" }) => definition),
];

const PROMTOOL = pathOf("../../../tools/promtool.sh");

async function promtool(...args: readonly string[]): Promise<string> {
  return (await promisify(execFile)(PROMTOOL, [...args])).stdout;
}

const found = spawnSync(PROMTOOL, ["--version"], { encoding: "utf8" });
const missing = found.status === 0 ? undefined : found.stderr.trim();

describeUnlessMissing({ title: "the Prometheus rules", name: "promtool", missing }, () => {
  test("promtool takes the rules", async () => {
    expect(await promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)).toContain(
      `${rules.length} rules found`,
    );
  });

  test("each rule fires when it should, and not before", async () => {
    const cases = (parse(readFileSync(CASES, "utf8")) as CasesFile).tests.flatMap((each) => each.alert_rule_test);
    for (const { alert } of rules) {
      const fires = cases.filter(({ alertname }) => alertname === alert).map(({ exp_alerts: list }) => list.length > 0);
      expect([alert, fires.includes(true), fires.includes(false)]).toEqual([alert, true, true]);
    }
    expect(await promtool("test", "rules", CASES)).toContain("SUCCESS");
  });
});

const failed = (scope: "message" | "destination" | "connection"): PublishResult => ({
  status: "failed",
  scope,
  code: "HTTP_500",
  reason: "no",
  retriable: scope !== "message",
});

/** What the broker says of each topic; of others, that it has them. */
function brokerOf(bench: ConsoleBench) {
  return memory({
    async outcome({ topic }) {
      if (topic === "wrong") return failed("message");
      if (topic === "full") return failed("destination");
      if (topic === "later") return { status: "notStarted", reason: "not its turn" };
      if (topic === "away") return failed("connection");
      // Somebody else has it by the time that the broker answers.
      if (topic === "taken") await bench.sql("UPDATE local_message SET lock_version = 99 WHERE topic = 'taken'");
      return undefined;
    },
  });
}

/** Rows that a relay finds, one for each thing that it counts. */
async function rowsFor(bench: ConsoleBench): Promise<void> {
  for (const topic of ["good", "wrong", "full", "later", "away", "taken", "held", "refused"])
    await bench.put("pending", 1, { topic });
  await bench.put("sending", 1, { topic: "left" });
  await bench.put("failed", 1, { topic: "again" });
  await bench.sql("UPDATE local_message SET next_retry_at = '2020-01-01 00:00:00.000' WHERE topic = 'again'");
  for (const topic of ["old", "older"]) await bench.put("sent", 1, { topic });
  await bench.sql("UPDATE local_message SET gmt_modified = '2020-01-01 00:00:00.000' WHERE topic = 'old'");
  await bench.sql(`CREATE TRIGGER refuses BEFORE UPDATE ON local_message WHEN NEW.topic = 'refused'
    BEGIN SELECT RAISE(ABORT, 'no'); END`);
  const admin = bench.database.messageAdmin({ layout: bench.database.defaultLayout });
  const action = { author: "ann", reason: "r", via: "cli" } as const;
  await admin.suspendScope({ scope: "topic", value: "held", endsInMs: null, ...action });
  await admin.remove({ filter: { topic: "older" }, mode: "archive", action, limit: 1 });
  await bench.sql("UPDATE local_message_archive SET archived_at = '2020-01-01 00:00:00.000'");
  await admin.close();
}

/** An alert that its channel does not take. */
async function tellNobody(bench: ConsoleBench, metrics: ReturnType<typeof createMetricsRegistry>, url: string) {
  let nowMs = 0;
  const monotonicMs = (): number => nowMs;
  const webhook = { name: "hook", type: "webhook", url, secret: undefined, keyword: undefined } as const;
  const config = { ...webhook, language: "en", from: "info" } as const;
  const evaluator = createEvaluator({
    name: "main",
    database: bench.database,
    layout: bench.database.defaultLayout,
    rules: RULE_DEFAULTS,
    logger: SILENT,
    metrics,
    monotonicMs,
    channels: [createChannel({ config, consoleUrl: undefined, secrets: [], monotonicMs })],
  });
  for (let turn = 0; turn < 8; turn += 1) {
    nowMs += 15_000;
    await evaluator.turn();
    await bench.put("failed", 1, { topic: "lost" });
  }
  await evaluator.close();
}

/** Listens until the end of the test. */
async function served(server: Server): Promise<string> {
  const listening = await listen(server, { host: "127.0.0.1", port: 0 }, "--listen");
  closers.push(() => listening.close());
  return `http://${listening.address}`;
}

/** A relay that meets all of this, with `/metrics` of its own; what a consumer confirms too. */
async function relayAt(bench: ConsoleBench, metrics: ReturnType<typeof createMetricsRegistry>): Promise<string> {
  const { database } = bench;
  const relay = createRelay({
    database,
    broker: brokerOf(bench),
    logger: "silent",
    metrics,
    heartbeatMs: 200,
    housekeepingMs: 100,
    retention: { onSent: "archive", keepMs: 1_000, archiveForMs: 1_000 },
  });
  await relay.start();
  const confirm = createConfirmEndpoint({ token: "t", outbox: createOutbox({ database }), metrics, logger: SILENT });
  const health = await serveHealth({ address: { host: "127.0.0.1", port: 0 }, metrics, relay, confirm });
  closers.push(async () => {
    await health.close();
    await relay.stop();
  });
  const body = JSON.stringify({ type: "t", key: "nobody" });
  await fetch(`http://${health.address}/confirmations`, {
    method: "POST",
    body,
    headers: { authorization: "Bearer t" },
  });
  return `http://${health.address}/metrics`;
}

/** A consumer of the queue, with an inbox, which meets all of this; where it serves `/metrics`. */
async function consumerAt({ database }: ConsoleBench): Promise<string> {
  const metrics = createMetricsRegistry();
  const queue = createQueue({ database, metrics });
  const inbox = createInbox({ database, consumer: "points", metrics });
  await queue.migrate();
  await inbox.migrate();
  await queue.createTopic({ topic: "orders", partitions: 1 });
  await queue.append([1, 2].map((number) => ({ topic: "orders", type: "order", key: String(number), body: number })));
  const consumer = await queue.consume({
    topic: "orders",
    group: "points",
    logger: "silent",
    retry: { maxAttempts: 2, baseMs: 1, maxMs: 1 },
    async handler({ key, type = "" }) {
      if (key === "1") throw new Error("no points");
      await inbox.handle(database, { message: { type, key: key ?? "" } }, async () => undefined);
    },
  });
  closers.push(() => consumer.stop());
  return await served(createServer(metrics.listener));
}

test("every metric and label that is asked for is exposed by a relay, a console and a consumer that run", async () => {
  const place = await temporaryFile();
  const bench = await openConsole(sqlite({ file: place.file }));
  closers.push(async () => {
    await bench.close();
    await place.remove();
  });
  await rowsFor(bench);
  const metrics = createMetricsRegistry();
  const at = await relayAt(bench, metrics);
  const [id = ""] = await bench.put("failed", 1);
  const token = bench.tokens.operator;
  await bench.ask("messages", { token, query: { limit: "2" } });
  await bench.ask("suspend", { token, params: { id }, headers: { "if-match": '"77"' }, body: { reason: "late" } });
  const console = await served(createServer((request, response) => bench.made.node(request, response)));
  const deaf = await served(createServer((_, response) => response.writeHead(500).end()));
  await tellNobody(bench, metrics, `${deaf}/`);

  const consumer = await consumerAt(bench);

  const exposed = async () =>
    (await Promise.all([at, `${console}/metrics`, consumer].map(async (url) => (await fetch(url)).text()))).join("");
  const names = [...new Set(asked.flatMap((expr) => expr.match(/rowpost_\w+/g) ?? []))];
  expect(names.length).toBeGreaterThan(30);
  const missing = async (): Promise<string[]> => {
    const text = await exposed();
    return names.filter((name) => !new RegExp(`^${name}[ {]`, "m").test(text));
  };
  await expect
    .poll(async () => (await missing()).filter((name) => !name.includes("lease_lost")), { timeout: 30_000 })
    .toEqual([]);
  await bench.sql("UPDATE local_message_shard SET owner = 'other', epoch = epoch + 1");
  await expect.poll(missing, { timeout: 10_000 }).toEqual([]);
  const text = await exposed();
  for (const expr of asked) {
    const lines = (expr.match(/rowpost_\w+/g) ?? []).flatMap(
      (name) => text.match(new RegExp(`^${name}[ {].*`, "gm")) ?? [],
    );
    for (const label of /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(", ") ?? []) {
      if (label === "job" || label === "instance") continue;
      expect(
        lines.some((line) => line.includes(`${label}="`)),
        `${label} of ${expr}`,
      ).toBe(true);
    }
  }
});
