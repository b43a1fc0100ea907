/**
 * NATS JetStream: a server of the test's own, killed with SIGKILL; and the shared one, cut off by a
 * proxy. The stream drops copies by their id.
 */
import { jetstream } from "@nats-io/jetstream";
import { nats } from "../../src/brokers/nats/index.ts";
import { type Admin, createAdmin, startPrivateServer } from "../brokers/nats-server.ts";
import { describeWithService } from "../services.ts";
import { type BrokerUnderTest, READ_WITHIN_MS } from "./broker-under-test.ts";
import { cutOff } from "./cut-by-proxy.ts";
import { defineKillRounds } from "./kill-rounds.cases.ts";

function streams(admin: Admin, url: string): Omit<BrokerUnderTest, "takeAway" | "bringBack" | "close"> {
  return {
    keepsCopies: false,
    createBroker: () => nats({ servers: url }),
    makeTopic: (name) => admin.createStream({ name, subjects: [name] }),
    removeTopic: (name) => admin.deleteStream(name),
    async readAll(topic) {
      const keys: string[] = [];
      const consumer = await jetstream(admin.connection).consumers.get(topic);
      const messages = await consumer.consume();
      const tooLate = setTimeout(() => messages.stop(new Error("the end did not come")), READ_WITHIN_MS);
      for await (const message of messages) {
        keys.push(message.headers?.get("rowpost-key") ?? "");
        if (message.info.pending === 0) break;
      }
      clearTimeout(tooLate);
      return keys;
    },
  };
}

async function killed(): Promise<BrokerUnderTest> {
  const server = await startPrivateServer();
  const admin = await createAdmin({ servers: server.address });
  let back: Promise<void> = Promise.resolve();
  return {
    ...streams(admin, `nats://${server.address}`),
    takeAway() {
      back = admin.reconnected();
      return server.kill();
    },
    async bringBack() {
      await server.start();
      await back;
    },
    async close() {
      await admin.close();
      await server.remove();
    },
  };
}

async function cut(address: string): Promise<BrokerUnderTest> {
  const place = await cutOff(address, 4222);
  const admin = await createAdmin({ servers: new URL(address).host });
  return {
    ...streams(admin, place.url),
    takeAway: place.takeAway,
    bringBack: place.bringBack,
    async close() {
      await admin.close();
      await place.close();
    },
  };
}

describeWithService("nats", "NATS", ({ address }) => {
  defineKillRounds("nats, killed", killed);
  defineKillRounds("nats, cut", () => cut(address));
});
