/** Redis Streams: ioredis, and one pipeline of XADDs for each batch. */
import { Redis } from "ioredis";
import type { OutgoingMessage } from "rowpost";
import type { BrokerServer } from "./broker.ts";

export async function openRedisServer(url: URL): Promise<BrokerServer> {
  const admin = connect(url);
  return {
    name: "Redis",
    port: Number(url.port || 6379),
    async makeTopic(topic) {
      await admin.xgroup("CREATE", topic, "bench", "0", "MKSTREAM");
    },
    async emptyTopic(topic) {
      await admin.xtrim(topic, "MAXLEN", 0);
    },
    async removeTopic(topic) {
      await admin.del(topic);
    },
    async bareProducer(topic) {
      const client = connect(url);
      await client.ping();
      return {
        async publish(batch) {
          const pipeline = client.pipeline();
          for (const message of batch) pipeline.xadd(topic, "*", ...fieldsOf(message));
          const answers = (await pipeline.exec()) ?? [];
          for (const [error] of answers) if (error !== null) throw error;
        },
        async close() {
          client.disconnect();
        },
      };
    },
    async close() {
      admin.disconnect();
    },
  };
}

/** Fails instead of waiting if the server is away. */
function connect(url: URL): Redis {
  const client = new Redis(url.href, { maxRetriesPerRequest: 0, retryStrategy: null });
  client.on("error", () => undefined);
  return client;
}

function fieldsOf({ body, contentType, headers }: OutgoingMessage): (string | Buffer)[] {
  return ["body", Buffer.from(body), "contentType", contentType, ...Object.entries(headers).flat()];
}
