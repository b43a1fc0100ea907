/**
 * RabbitMQ: amqplib, one confirm channel; persistent and mandatory messages to a durable queue,
 * with all confirms of a batch awaited.
 */
import { type ConfirmChannel, connect } from "amqplib";
import type { OutgoingMessage } from "rowpost";
import type { BrokerServer } from "./broker.ts";

export async function openRabbitmqServer(url: URL): Promise<BrokerServer> {
  const connection = await connect(url.href, { noDelay: true });
  const channel = await connection.createChannel();
  return {
    name: "RabbitMQ",
    port: Number(url.port || 5672),
    async makeTopic(topic) {
      await channel.assertQueue(topic, { durable: true });
    },
    async emptyTopic(topic) {
      await channel.purgeQueue(topic);
    },
    async removeTopic(topic) {
      await channel.deleteQueue(topic);
    },
    async bareProducer(topic) {
      const own = await connect(url.href, { noDelay: true });
      const confirms = await own.createConfirmChannel();
      let returned = 0;
      confirms.on("return", () => {
        returned += 1;
      });
      return {
        async publish(batch) {
          await Promise.all(batch.map((message) => confirmed(confirms, topic, message)));
          if (returned > 0) throw new Error(`RabbitMQ gave ${returned} messages back`);
        },
        close: () => own.close(),
      };
    },
    close: () => connection.close(),
  };
}

function confirmed(channel: ConfirmChannel, queue: string, message: OutgoingMessage): Promise<void> {
  const { type, key, body, contentType, headers } = message;
  // As the adapter sends.
  const identity = { messageId: `${type}:${key}`, type, timestamp: Math.floor(Date.now() / 1_000) };
  const properties = { mandatory: true, persistent: true, ...identity, contentType, headers };
  return new Promise((resolve, reject) => {
    channel.publish("", queue, Buffer.from(body), properties, (error: unknown) => {
      if (error === null || error === undefined) resolve();
      else reject(error instanceof Error ? error : new Error("RabbitMQ refused a message"));
    });
  });
}
