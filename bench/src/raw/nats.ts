/**
 * NATS JetStream: the @nats-io packages; each message of a batch with its id, and its own
 * acknowledgment.
 */
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, headers as emptyHeaders } from "@nats-io/transport-node";
import type { OutgoingMessage } from "rowpost";
import type { BrokerServer } from "./broker.ts";

export async function openNatsServer(url: URL): Promise<BrokerServer> {
  const options = { servers: url.host };
  const connection = await connect(options);
  const manager = await jetstreamManager(connection);
  return {
    name: "NATS",
    port: Number(url.port || 4222),
    async makeTopic(topic) {
      await manager.streams.add({ name: topic, subjects: [topic] });
    },
    // Without a new stream, ids of the previous run would be dropped as duplicates.
    async emptyTopic(topic) {
      await manager.streams.delete(topic);
      await manager.streams.add({ name: topic, subjects: [topic] });
    },
    async removeTopic(topic) {
      await manager.streams.delete(topic);
    },
    async bareProducer(topic) {
      const own = await connect(options);
      const stream = jetstream(own);
      return {
        async publish(batch) {
          await Promise.all(
            batch.map(async (message) => {
              const { duplicate } = await stream.publish(topic, message.body, {
                msgID: `${message.type}:${message.key}`,
                headers: headersOf(message),
                timeout: 30_000,
              });
              if (duplicate) throw new Error("NATS dropped a message as a copy");
            }),
          );
        },
        close: () => own.close(),
      };
    },
    close: () => connection.close(),
  };
}

function headersOf({ headers }: OutgoingMessage): ReturnType<typeof emptyHeaders> {
  const fields = emptyHeaders();
  for (const [name, value] of Object.entries(headers)) fields.set(name, value);
  return fields;
}
