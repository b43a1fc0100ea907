/** What tests of both RocketMQ brokers make of a message that a reader got. */
import { expect } from "vitest";
import type { Broker, OutgoingMessage } from "../../src/brokers/broker.ts";
import { headersOf } from "../../src/brokers/rocketmq/carry.ts";
import type { ArrivedMessage, BrokerHarness } from "../../src/testing/index.ts";
import { noDeadline } from "./messages.ts";
import type { ConsumedMessage, Reader } from "./rocketmq-server.ts";

/** The message key, as the headers have it. */
export function keyOf({ properties }: ConsumedMessage): string {
  return headersOf(properties)["rowpost-key"] ?? "";
}

function received({ body, properties, messageId, receivedAtMs }: ConsumedMessage): ArrivedMessage {
  const headers = Object.fromEntries(
    Object.entries(headersOf(properties)).map(([name, value]) => [name.toLowerCase(), value]),
  );
  const contentType = headers["content-type"] ?? "application/json";
  return { body, headers, contentType, dedupeId: messageId, receivedAtMs };
}

/** The harness's `consume`, by a reader of all its topics. */
export function consumeWith(readerOf: () => Reader): BrokerHarness["consume"] {
  return async ({ topic, keyPrefix, count, withinMs }) => {
    const reader = readerOf();
    const mine = (all: ConsumedMessage[]): ConsumedMessage[] =>
      all.filter((message) => keyOf(message).startsWith(keyPrefix));
    const isEnough = (all: ConsumedMessage[]): boolean => new Set(mine(all).map(keyOf)).size >= count;
    await reader.waitFor(topic, isEnough, withinMs).catch(() => undefined);
    return mine(reader.messages(topic)).map(received);
  };
}

/** Resolves once the broker sends this message. */
export async function sendsSoon(broker: Broker, message: OutgoingMessage): Promise<void> {
  const probe = async (): Promise<string | undefined> => (await broker.publish([message], noDeadline()))[0]?.status;
  await expect.poll(probe, { timeout: 30_000, interval: 50 }).toBe("sent");
}
