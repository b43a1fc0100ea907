/** Another service: it reads a queue, made for this run. */
import { connect } from "amqplib";
import { RABBITMQ_URL } from "./settings.ts";

export interface Consumer {
  /** Reads until the queue is empty, removes it, and ends. */
  finish(): Promise<void>;
}

/** Calls back with the header `rowpost-key` of each message: the id of an order. */
export async function startConsumer(queue: string, onOrder: (id: string) => void): Promise<Consumer> {
  const connection = await connect(RABBITMQ_URL);
  const channel = await connection.createChannel();
  await channel.assertQueue(queue);
  await channel.consume(queue, (message) => {
    if (message === null) return;
    onOrder(String(message.properties.headers?.["rowpost-key"]));
    channel.ack(message);
  });

  return {
    async finish() {
      // The answer comes on this channel behind every message that the queue has handed out.
      while ((await channel.checkQueue(queue)).messageCount > 0);
      await channel.deleteQueue(queue);
      await connection.close();
    },
  };
}
