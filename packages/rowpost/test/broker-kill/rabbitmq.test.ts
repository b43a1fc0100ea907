/** RabbitMQ: the shared server, cut off by a proxy; durable queues, persistent messages. */
import { type ConsumeMessage, connect } from "amqplib";
import { rabbitmq } from "../../src/brokers/rabbitmq/index.ts";
import { describeWithService } from "../services.ts";
import { type BrokerUnderTest, READ_WITHIN_MS } from "./broker-under-test.ts";
import { cutOff } from "./cut-by-proxy.ts";
import { defineKillRounds } from "./kill-rounds.cases.ts";

/** A queue of a run that was killed is deleted by the server after this time. */
const EXPIRES_MS = 600_000;

async function cut(address: string): Promise<BrokerUnderTest> {
  const place = await cutOff(address, 5672);
  const connection = await connect(address, { noDelay: true });
  const channel = await connection.createChannel();
  return {
    keepsCopies: true,
    createBroker: () => rabbitmq({ url: place.url }),
    async makeTopic(name) {
      await channel.assertQueue(name, { durable: true, arguments: { "x-expires": EXPIRES_MS } });
    },
    async removeTopic(name) {
      await channel.deleteQueue(name);
    },
    takeAway: place.takeAway,
    bringBack: place.bringBack,
    async readAll(topic) {
      const { messageCount } = await channel.checkQueue(topic);
      const keys: string[] = [];
      let consumerTag = "";
      await new Promise<void>((resolve, reject) => {
        const tooLate = setTimeout(
          () => reject(new Error(`only ${keys.length} of ${messageCount} came`)),
          READ_WITHIN_MS,
        );
        const receive = (message: ConsumeMessage | null): void => {
          keys.push(String(message?.properties.headers?.["rowpost-key"]));
          if (keys.length < messageCount) return;
          clearTimeout(tooLate);
          resolve();
        };
        channel.consume(topic, receive, { noAck: true }).then((consumer) => {
          consumerTag = consumer.consumerTag;
        }, reject);
      });
      await channel.cancel(consumerTag);
      return keys;
    },
    async close() {
      await place.close();
      await connection.close();
    },
  };
}

describeWithService("rabbitmq", "RabbitMQ", ({ address }) => {
  defineKillRounds("rabbitmq, cut", () => cut(address));
});
