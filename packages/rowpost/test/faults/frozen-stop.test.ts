/**
 * A relay is told to stop while its database is frozen: connections are accepted and nothing is
 * answered. The stop ends while the database is still frozen, and says what it left; so does the
 * process. What it left, the next relay finds and sends.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { memory } from "../../src/brokers/memory.ts";
import type { FaultPoint } from "../../src/relay/options.ts";
import { createRelay, type StopReport } from "../../src/relay/relay.ts";
import { createTcpProxy, type TcpProxy } from "../../src/testing/tcp-proxy.ts";
import { createRelayDatabase, type RelayTestDatabase } from "../relay/bench-database.ts";
import { describeWithService } from "../services.ts";

const PROGRAM = fileURLToPath(new URL("./frozen-stop.process.mjs", import.meta.url));
const MESSAGES = 5;
const SENT = 2;

/** Each waits for a stop, and for a relay that takes over. Without limits, stops end later. */
const TIMEOUT = { timeout: 30_000 };

function defineCases(service: "mariadb" | "mysql9" | "postgres", driver: "mysql2" | "mariadb" | "pg"): void {
  let database: RelayTestDatabase;
  let proxy: TcpProxy;
  let child: ChildProcess | undefined;

  beforeEach(async () => {
    database = await createRelayDatabase(service);
    await database.insert(Array.from({ length: MESSAGES }, (_, index) => ({ key: String(index), orderingKey: "k" })));
    const url = new URL(database.url);
    proxy = await createTcpProxy({ target: { host: url.hostname, port: Number(url.port) } });
  });
  afterEach(async () => {
    if (child?.exitCode === null) child.kill("SIGKILL");
    await proxy.close();
    await database.drop();
  });

  /** Freezes the database when the relay reaches the point, and tells it to stop. */
  async function stopFrozenAt(wait: FaultPoint): Promise<StopReport> {
    const url = new URL(database.url);
    url.host = `127.0.0.1:${proxy.port}`;
    const started = fork(PROGRAM, [JSON.stringify({ driver, url: url.href, drainTimeoutMs: 500, wait })], {
      stdio: "inherit",
      execArgv: [],
    });
    child = started;
    const said: { readonly reached?: string; readonly report?: StopReport }[] = [];
    started.on("message", (message: (typeof said)[number]) => {
      said.push(message);
      if (message.reached === undefined) return;
      proxy.mute();
      started.send("stop");
    });
    // Still frozen then: nothing but the limits of the stop can have ended it.
    expect(await once(started, "exit")).toEqual([0, null]);
    expect(said).toMatchObject([{ reached: wait }, { report: {} }]);
    return said[1]?.report ?? { drained: true, unsettled: Number.NaN };
  }

  async function heirSendsTheRest(): Promise<void> {
    await proxy.close();
    const broker = memory();
    const heir = createRelay({ database: database.connect(), broker, publishTimeoutMs: 2_000, leaseMs: 20_000 });
    await heir.drain({ timeoutMs: 25_000 });
    expect(await database.states()).toEqual({ [SENT]: MESSAGES });
  }

  it("with outcomes that cannot be written: it says how many, and the next relay sends them", async () => {
    expect(await stopFrozenAt("beforeSettle")).toEqual({ drained: false, unsettled: MESSAGES });
    expect(await database.states()).toEqual({ 1: MESSAGES });
    await heirSendsTheRest();
  });

  it("at a heartbeat while it starts", async () => {
    expect(await stopFrozenAt("heartbeat")).toEqual({ drained: true, unsettled: 0 });
    await heirSendsTheRest();
  });

  it("in the middle of a claim: whether it was written is unknown, and nothing is lost", async () => {
    expect(await stopFrozenAt("beforeClaim")).toMatchObject({ drained: false });
    await heirSendsTheRest();
  });
}

describeWithService("mariadb", "a stop with a frozen database through mysql2", () => {
  describe("", TIMEOUT, () => defineCases("mariadb", "mysql2"));
});
describeWithService("mariadb", "a stop with a frozen database through mariadb", () => {
  describe("", TIMEOUT, () => defineCases("mariadb", "mariadb"));
});
describeWithService("mysql9", "a stop with a frozen database through mysql2", () => {
  describe("", TIMEOUT, () => defineCases("mysql9", "mysql2"));
});
describeWithService("postgres", "a stop with a frozen database through pg", () => {
  describe("", TIMEOUT, () => defineCases("postgres", "pg"));
});
