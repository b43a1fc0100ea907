/**
 * SQS: an ElasticMQ of the test's own, killed with SIGKILL; and the shared one, cut off by a proxy.
 * ElasticMQ writes messages and queues behind its answers, so that some die with it. So the relay
 * is cut off first, and the reader takes what was acknowledged before the kill.
 */
import { decodeSqsMessage, sqs } from "../../src/brokers/sqs/index.ts";
import { type Admin, createAdmin, PLACE, startElasticmq } from "../brokers/sqs-server.ts";
import { describeWithService } from "../services.ts";
import type { BrokerUnderTest } from "./broker-under-test.ts";
import { cutOff } from "./cut-by-proxy.ts";
import { defineKillRounds } from "./kill-rounds.cases.ts";

interface Reader
  extends Pick<BrokerUnderTest, "keepsCopies" | "createBroker" | "makeTopic" | "removeTopic" | "readAll"> {
  /** Takes all that the queues hold. */
  readonly takeAll: () => Promise<void>;
  /** Makes the queues that the server has forgotten. */
  readonly makeAgain: () => Promise<void>;
}

/** Messages are deleted as they are taken: what was taken once is kept here. */
function reader(admin: Admin, url: string): Reader {
  const queues = new Map<string, { readonly name: string; readonly taken: string[] }>();
  const empty = async (topic: string): Promise<readonly string[]> => {
    const { name, taken } = queues.get(topic) ?? { name: topic, taken: [] };
    for (;;) {
      const messages = await admin.take(name, 1);
      if (messages.length === 0) return taken;
      taken.push(...messages.map((message) => decodeSqsMessage(message).headers["rowpost-key"] ?? ""));
    }
  };
  return {
    // A FIFO queue drops them, the other one does not.
    keepsCopies: true,
    createBroker: () =>
      sqs({ ...PLACE, endpoint: `http://${new URL(url).host}`, queue: (topic) => queues.get(topic)?.name ?? topic }),
    async makeTopic(topic, kind) {
      const name = kind === "ordered" ? `${topic}.fifo` : topic;
      queues.set(topic, { name, taken: [] });
      await admin.create(name);
    },
    async removeTopic(topic) {
      await admin.remove(queues.get(topic)?.name ?? topic);
      queues.delete(topic);
    },
    readAll: empty,
    async takeAll() {
      await Promise.all([...queues.keys()].map(empty));
    },
    async makeAgain() {
      for (const { name } of queues.values()) await admin.create(name);
    },
  };
}

async function killed(): Promise<BrokerUnderTest> {
  const server = await startElasticmq();
  const admin = createAdmin(`http://127.0.0.1:${server.port}`);
  const place = await cutOff(`sqs://127.0.0.1:${server.port}`, 9324);
  const { makeAgain, takeAll, ...rest } = reader(admin, place.url);
  return {
    ...rest,
    async takeAway() {
      await place.takeAway();
      await takeAll();
      await server.kill();
    },
    async bringBack() {
      await server.start();
      await makeAgain();
      await place.bringBack();
    },
    async close() {
      admin.close();
      await place.close();
      await server.remove();
    },
  };
}

async function cut(address: string): Promise<BrokerUnderTest> {
  const admin = createAdmin(`http://${new URL(address).host}`);
  const { bringBack, close, takeAway, url } = await cutOff(address, 9324);
  const { makeAgain: _makeAgain, takeAll: _takeAll, ...rest } = reader(admin, url);
  return {
    ...rest,
    takeAway,
    bringBack,
    async close() {
      admin.close();
      await close();
    },
  };
}

describeWithService("elasticmq", "SQS", ({ address }) => {
  defineKillRounds("sqs, killed", killed);
  defineKillRounds("sqs, cut", () => cut(address));
});
