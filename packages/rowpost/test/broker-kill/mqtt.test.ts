/**
 * MQTT: a Mosquitto of the test's own, killed with SIGKILL; and the shared one, cut off by a proxy.
 * What Mosquitto has acknowledged is in its memory and dies with it. So the relay is cut off first,
 * and the reader, who is there all the time, has all that was acknowledged before the kill.
 */
import type { MqttClient } from "mqtt";
import { mqtt } from "../../src/brokers/mqtt/index.ts";
import { startMosquitto, subscribe } from "../brokers/mqtt-server.ts";
import { describeWithService } from "../services.ts";
import type { BrokerUnderTest } from "./broker-under-test.ts";
import { cutOff } from "./cut-by-proxy.ts";
import { defineKillRounds } from "./kill-rounds.cases.ts";

interface Readers extends Omit<BrokerUnderTest, "takeAway" | "bringBack" | "close"> {
  /** Resolves when the readers have all that the server has for them. */
  readonly caughtUp: () => Promise<void>;
  /** Subscribes again, on a new connection. */
  readonly again: () => Promise<void>;
  readonly end: () => Promise<void>;
}

const MARKER = "behind all ";

function readers(server: string, url: string): Readers {
  const arrived = new Map<string, string[]>();
  const open = new Map<string, MqttClient>();
  const listen = async (topic: string): Promise<void> => {
    const client = await subscribe(server, [topic], ({ headers }) => {
      arrived.get(topic)?.push(headers["rowpost-key"] ?? "");
    });
    open.set(topic, client);
  };
  const leave = async (topic: string): Promise<void> => {
    await open.get(topic)?.endAsync(true);
    open.delete(topic);
  };
  let markers = 0;
  /** A message behind everything that the server has for this reader has come. */
  const marked = async (topic: string): Promise<void> => {
    const end = mqtt({ servers: server });
    markers += 1;
    const key = `${MARKER}${markers}`;
    const marker = { id: "0", type: "end", key, topic, body: "", contentType: "text/plain", attempt: 1 };
    await end.publish([{ ...marker, headers: { "rowpost-key": key }, orderingKey: undefined }], {
      signal: AbortSignal.timeout(10_000),
    });
    await end.close();
    const client = open.get(topic);
    while (arrived.get(topic)?.includes(key) !== true) await new Promise((next) => client?.once("message", next));
  };
  return {
    keepsCopies: true,
    createBroker: () => mqtt({ servers: new URL(url).host, requireSubscribers: true }),
    async caughtUp() {
      for (const topic of open.keys()) await marked(topic);
    },
    async makeTopic(name) {
      arrived.set(name, []);
      await listen(name);
    },
    async removeTopic(name) {
      await leave(name);
      arrived.delete(name);
    },
    async readAll(topic) {
      await marked(topic);
      return (arrived.get(topic) ?? []).filter((key) => !key.startsWith(MARKER));
    },
    async again() {
      for (const topic of [...open.keys()]) {
        await leave(topic);
        await listen(topic);
      }
    },
    async end() {
      for (const topic of [...open.keys()]) await leave(topic);
    },
  };
}

async function killed(): Promise<BrokerUnderTest> {
  const server = await startMosquitto();
  const place = await cutOff(`mqtt://${server.address}`, 1883);
  const { again, caughtUp, end, ...rest } = readers(server.address, place.url);
  return {
    ...rest,
    async takeAway() {
      await place.takeAway();
      await caughtUp();
      await server.kill();
    },
    async bringBack() {
      await server.start();
      await again();
      await place.bringBack();
    },
    async close() {
      await end();
      await place.close();
      await server.remove();
    },
  };
}

async function cut(address: string): Promise<BrokerUnderTest> {
  const place = await cutOff(address, 1883);
  const { again: _again, caughtUp: _caughtUp, end, ...rest } = readers(new URL(address).host, place.url);
  return {
    ...rest,
    takeAway: place.takeAway,
    bringBack: place.bringBack,
    async close() {
      await end();
      await place.close();
    },
  };
}

describeWithService("mosquitto", "MQTT", ({ address }) => {
  defineKillRounds("mqtt, killed", killed);
  defineKillRounds("mqtt, cut", () => cut(address));
});
