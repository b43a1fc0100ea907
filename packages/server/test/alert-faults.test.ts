/** Evaluators that are killed, and channels that never answer. */
import { createOutbox, createRelay, type Database, memory, migrate } from "rowpost";
import { sqlite } from "rowpost/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readAlertFile } from "../src/alerts/config.ts";
import { startAlerts } from "../src/alerts/start.ts";
import { NO_ALERTS, type Notice } from "../src/alerts/state.ts";
import {
  type AlertDatabase,
  describeDatabases,
  type Hook,
  onlyRules,
  putAlerts,
  runSql,
  startHook,
  storedAlerts,
  webhookAt,
  writeAlerts,
} from "./alert-bench.ts";
import { insertMessages, rowpost, startRowpost, temporaryFile } from "./command.ts";

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
const MINUTE_AGO = {
  mysql: "saved_at - INTERVAL 1 MINUTE",
  postgres: "saved_at - INTERVAL '1 minute'",
  sqlite: "strftime('%Y-%m-%d %H:%M:%f', saved_at, '-1 minute')",
};

const closers: (() => unknown)[] = [];
let hook: Hook;
let files: Awaited<ReturnType<typeof temporaryFile>>;

beforeEach(async () => {
  files = await temporaryFile();
  hook = await startHook();
  closers.push(
    () => files.remove(),
    () => hook.close(),
  );
});

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function killed(create: () => Promise<AlertDatabase>): void {
  test("a notice whose evaluator is killed before its answer is sent by the next one, once, and not again", async () => {
    const made = await create();
    const { database, url } = made;
    closers.push(
      () => made.drop(),
      () => database.close(),
    );
    await migrate(database, { layout: database.defaultLayout });
    const { dialect } = database;
    const passMinute = () => runSql(database, `UPDATE local_message_alert SET saved_at = ${MINUTE_AGO[dialect]}`);
    await insertMessages(database, { count: 2, topic: "orders", prefix: "a" });
    await runSql(database, "UPDATE local_message SET state = 3");
    const alerts = writeAlerts(`${files.file}.json`, {
      rules: onlyRules({ failed: { criticalFrom: 1 } }),
      channels: { night: webhookAt(hook.url("/night")) },
    });
    const check = ["alert", "check", "--once", "--database", url, "--alerts", alerts];

    // Begins, and is told with the next look.
    expect(await rowpost(check)).toMatchObject({ code: 1 });
    await passMinute();
    hook.answers("/night", "never");
    const dying = startRowpost(check);
    await hook.came("/night", 1);
    const [pending] = (await storedAlerts(database)).notices;
    expect(pending).toMatchObject({ id: hook.told[0]?.id, deliveries: { night: { tries: 0 } } });
    dying.child.kill("SIGKILL");
    expect(await dying.finished).toMatchObject({ signal: "SIGKILL" });

    // Until its lease is over nobody else tells.
    expect(await rowpost(check)).toMatchObject({ code: 1, stdout: expect.stringContaining("failed") });
    expect(hook.told).toHaveLength(1);
    await passMinute();
    await runSql(database, "UPDATE local_message_alert SET lease_until = saved_at");
    expect(await rowpost(check)).toMatchObject({ code: 1 });
    expect(hook.told.map(({ id }) => id)).toEqual([pending?.id, pending?.id]);
    expect((await storedAlerts(database)).notices).toEqual([]);
    await passMinute();
    expect(await rowpost(check)).toMatchObject({ code: 1 });
    expect(hook.told).toHaveLength(2);
  });
}

describeDatabases("killed", killed);

describe("a channel that accepts and never answers", () => {
  const NOTICE: Notice = {
    id: "alert_1",
    at: "2026-11-24T03:01:00.000Z",
    deliveries: { night: { tries: 0, nextMs: 0 } },
    items: [
      {
        ...({ rule: "failed", subject: "orders", severity: "critical", kind: "firing", facts: {} } as const),
        since: "2026-11-24T03:00:00.000Z",
        forMs: 60_000,
        value: 7,
        peak: 7,
      },
    ],
  };
  let database: Database;

  beforeEach(async () => {
    database = sqlite({ file: files.file });
    closers.push(() => database.close());
    await migrate(database, { layout: database.defaultLayout });
  });

  function alertsFile(channels: object): string {
    return writeAlerts(`${files.file}.json`, { rules: onlyRules({}), channels });
  }

  test("holds no relay up that works in the same process", async () => {
    const path = alertsFile({ night: webhookAt(hook.url("/night")), day: webhookAt(hook.url("/day")) });
    const deliveries = { night: { tries: 0, nextMs: 0 }, day: { tries: 0, nextMs: 0 } };
    await putAlerts(database, { ...NO_ALERTS, notices: [{ ...NOTICE, deliveries }] });
    hook.answers("/night", "never");
    const alerts = startAlerts({
      sources: [{ name: "main", database }],
      config: readAlertFile(path, {}),
      logger: SILENT,
      // Held for longer than this test lasts.
      pace: { everyMs: 15_000, answerMs: 3_600_000 },
    });
    await Promise.all([hook.came("/night", 1), hook.came("/day", 1)]);
    const outbox = createOutbox({ database });
    await outbox.transaction((tx) => outbox.enqueue(tx, { type: "t", key: "1", topic: "orders", body: 1 }));
    const broker = memory();
    const relay = createRelay({ database, broker, logger: SILENT });
    await relay.start();
    await expect.poll(() => broker.published("orders")).toHaveLength(1);
    expect(await relay.stop()).toMatchObject({ drained: true });
    expect(hook.told).toHaveLength(2);
    hook.close();
    await alerts.close();
  });

  test("lets the process stop with everything settled; its notice waits for who evaluates next", async () => {
    const path = alertsFile({ night: webhookAt(hook.url("/night")) });
    await putAlerts(database, { ...NO_ALERTS, notices: [NOTICE] });
    hook.answers("/night", "never");
    await insertMessages(database, { count: 3, topic: "orders", prefix: "a" });
    const relay = startRowpost(["relay", "--database", files.url, "--broker", "stdout:", "--alerts", path]);
    closers.push(() => relay.child.kill("SIGKILL"));
    await Promise.all([hook.came("/night", 1), relay.printed('"key":"a-2"')]);
    relay.child.kill("SIGTERM");
    const { code, stderr } = await relay.finished;
    expect([code, stderr]).toEqual([0, expect.stringMatching(/"drained":true,"unsettled":0,.*"relay stopped"/)]);
    expect((await storedAlerts(database)).notices).toMatchObject([
      { id: NOTICE.id, deliveries: { night: { tries: 1 } } },
    ]);
    const next = database.alerts({ layout: database.defaultLayout });
    expect(await next.take({ owner: "n".repeat(36), leaseMs: 60_000 })).toBeDefined();
    await next.close();
  });
});
