import { memory } from "../../src/brokers/memory.ts";
import type { BrokerHarness, ReceivedMessage } from "../../src/testing/index.ts";
import { bindBrokerContract } from "./bind.ts";

const LIMIT = 65_536;

bindBrokerContract("memory", (): BrokerHarness => {
  const brokers: ReturnType<typeof memory>[] = [];
  // Seen first at: waitFor() resolves in the moment in which a message becomes visible.
  const arrivedAt = new Map<object, number>();
  return {
    name: "memory",
    createBroker() {
      const broker = memory({ topics: ["orders", "billing"], maxBodyBytes: LIMIT });
      brokers.push(broker);
      return broker;
    },
    features: { ordering: "key", delay: true, reportsUnknownTopic: true, maxBodyBytes: LIMIT },
    topics: { main: "orders", other: "billing", ordered: "orders", delayed: "orders", unknown: "nowhere" },
    async consume({ topic, keyPrefix, count, withinMs }) {
      const broker =
        brokers.find((each) => each.published(topic).some(({ key }) => key.startsWith(keyPrefix))) ?? brokers.at(-1);
      await broker?.waitFor(count, { withinMs }).catch(() => undefined);
      const published = broker?.published(topic).filter(({ key }) => key.startsWith(keyPrefix)) ?? [];
      return published.map((message): ReceivedMessage => {
        if (!arrivedAt.has(message)) arrivedAt.set(message, Date.now());
        const body = typeof message.body === "string" ? Buffer.from(message.body) : message.body;
        const headers = Object.fromEntries(
          Object.entries(message.headers).map(([name, value]) => [name.toLowerCase(), value]),
        );
        return { body, headers, contentType: message.contentType, receivedAtMs: arrivedAt.get(message) ?? 0 };
      });
    },
  };
});
