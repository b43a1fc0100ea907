/**
 * The MQTT broker on a Mosquitto of its own, with a login, that is killed and frozen: the broker
 * contract, then what it does not ask.
 */

import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Broker, OutgoingMessage } from "../../src/brokers/broker.ts";
import { type MqttOptions, mqtt } from "../../src/brokers/mqtt/index.ts";
import { type BrokerHarness, createReceivedLog, createTcpProxy } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { bindBrokerContract } from "./bind.ts";
import { defineFaults, sends } from "./faults.cases.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { type PrivateMosquitto, startMosquitto, subscribe } from "./mqtt-server.ts";
import { counts, endsByItself, sendsAllAgain } from "./outcomes.ts";

const TOPICS = { main: "orders", other: "billing", ordered: "ledger/lines", unknown: "nowhere" };
const LIMIT = 1_000_000;
const LOGIN = { user: "relay", password: "good news" };
const READER = { username: LOGIN.user, password: LOGIN.password };

describeWithService("mosquitto", "the MQTT broker and its faults", () => {
  let server: PrivateMosquitto;

  beforeAll(async () => {
    server = await startMosquitto(async (folder) => {
      const file = join(folder, "passwords");
      await writeFile(file, "");
      await promisify(execFile)("mosquitto_passwd", ["-b", file, LOGIN.user, LOGIN.password]);
      return `allow_anonymous false\npassword_file ${file}`;
    });
  });

  afterAll(() => server?.remove());

  const create = (options: Partial<MqttOptions> = {}): Broker =>
    mqtt({ servers: server.address, ...LOGIN, ackTimeoutMs: 2000, connectTimeoutMs: 1000, ...options });

  async function harness(): Promise<BrokerHarness> {
    const proxy = await createTcpProxy({ target: { port: server.port } });
    const log = createReceivedLog();
    const session = `contract-${process.pid}`;
    const reader = await subscribe(
      server.address,
      [TOPICS.main, TOPICS.other, TOPICS.ordered],
      ({ topic, body, headers, contentType }) => {
        const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
        log.add(topic, { body, headers: Object.fromEntries(lower), contentType, receivedAtMs: Date.now() });
      },
      { ...READER, session },
    );
    const through = { servers: `127.0.0.1:${proxy.port}`, ackTimeoutMs: 10_000, requireSubscribers: true };
    return {
      name: "mqtt",
      createBroker: () => create({ ...through, maxBodyBytes: LIMIT }),
      createUnauthorized: () => create({ ...through, password: "bad news" }),
      features: { ordering: "key", reportsUnknownTopic: true, maxBodyBytes: LIMIT },
      topics: TOPICS,
      consume: log.consume,
      faults: proxy,
      async restart() {
        await server.stop();
        await server.start();
      },
      async close() {
        await reader.endAsync(true);
        await proxy.close();
      },
    };
  }

  bindBrokerContract("mqtt", harness);

  const message = (key: string, changes: Partial<OutgoingMessage> = {}): OutgoingMessage =>
    outgoing(key, { topic: TOPICS.main, ...changes });

  test("kill -9 while publishing: what was on its way is unknown, the rest certainly not handed over, and nothing is sent again by itself", async () => {
    const broker = create();
    const arrived: string[] = [];
    const read = (): ReturnType<typeof subscribe> =>
      subscribe(server.address, [TOPICS.main], ({ headers }) => arrived.push(headers["rowpost-key"] ?? ""), READER);
    let reader = await read();
    try {
      await sends(broker, message);
      const batches = Array.from({ length: 40 }, (_, call) =>
        Array.from({ length: 500 }, (_each, index) =>
          message(`kill-${call}-${index}`, index % 3 === 0 ? { orderingKey: `kill-${call}-${index % 20}` } : {}),
        ),
      );
      const sent: string[] = [];
      const open: string[] = [];
      const during: Record<string, number> = {};
      for (const [call, batch] of batches.entries()) {
        const publishing = broker.publish(batch, noDeadline());
        // In the middle of a call, with receipts under way.
        if (call === 3) await Promise.all([server.kill(), publishing]);
        const results = await publishing;
        for (const [index, result] of results.entries()) {
          const key = batch[index]?.key ?? "";
          if (result.status === "sent") sent.push(key);
          if (result.status === "failed") expect(["unknown", "connection"]).toContain(result.scope);
          if (result.status === "failed" && result.scope === "unknown") open.push(key);
        }
        for (const [name, count] of Object.entries(counts(results))) during[name] = (during[name] ?? 0) + count;
        if (call === 4) break;
      }
      expect(during["unknown"]).toBeGreaterThan(0);
      expect(during["connection"]).toBeGreaterThan(0);
      await expect(broker.check()).rejects.toThrow(/ECONNREFUSED/);
      await reader.endAsync(true);
      await server.start();
      reader = await read();
      await sendsAllAgain(
        (by) => by.publish([message(`again-${process.hrtime.bigint()}`)], noDeadline()),
        broker,
        create,
      );
      await expect.poll(() => arrived.some((key) => key.startsWith("again-"))).toBe(true);
      // What nobody has a receipt for went out at most once: a new connection sends nothing of
      // the old one.
      const copies = arrived.filter((key, index) => key.startsWith("kill-") && arrived.indexOf(key) !== index);
      expect(copies).toEqual([]);
      const handed = new Set([...sent, ...open]);
      expect(arrived.filter((key) => key.startsWith("kill-") && !handed.has(key))).toEqual([]);
    } finally {
      await reader.endAsync(true);
      await broker.close();
    }
  }, 60_000);

  defineFaults({ create, server: () => server, message, maxInFlight: 10 });

  test("after a deadline nothing more goes to a server that is frozen: the next call gets another connection", async () => {
    const broker = create({ ackTimeoutMs: 60_000 });
    try {
      await sends(broker, message);
      await server.freeze();
      const late = await broker.publish([message("late")], { signal: AbortSignal.timeout(300) });
      expect(late).toMatchObject([{ scope: "unknown", code: "DEADLINE" }]);
      const next = await endsByItself("publish", broker.publish([message("next")], noDeadline()));
      expect(next).toMatchObject([{ scope: "connection", code: "CONNECT_TIMEOUT" }]);
    } finally {
      server.thaw();
      await broker.close();
    }
  }, 60_000);

  test("a wrong password concerns everything: no message is to blame, and the advice names the variables, not the password", async () => {
    const broker = create({ password: "bad news" });
    try {
      await expect(broker.check()).rejects.toMatchObject({
        code: "UNAUTHORIZED",
        retriable: false,
        message: expect.stringContaining("ROWPOST_MQTT_PASSWORD"),
      });
      const results = await broker.publish([message("u-1"), message("u-2", { orderingKey: "u" })], noDeadline());
      for (const result of results) expect(result).toMatchObject({ scope: "connection", code: "UNAUTHORIZED" });
      expect(JSON.stringify(results)).not.toContain("bad news");
      await expect(broker.check()).rejects.not.toThrow(/bad news/);
    } finally {
      await broker.close();
    }
  });
});
