/**
 * RocketMQ. The official client has no batches, which are ten times as fast, so the bare client is
 * our own producer without a relay.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { openBroker } from "../rowpost.ts";
import type { BareProducer, BrokerServer } from "./broker.ts";

const TOOL = fileURLToPath(new URL("../../../tools/services/rocketmq", import.meta.url));

export async function openRocketmqServer(url: URL): Promise<BrokerServer> {
  const port = Number(url.port || 8081);
  const tool = async (...words: string[]): Promise<void> => {
    await promisify(execFile)(TOOL, words, { env: { ...process.env, ROCKETMQ_GRPC_PORT: String(port) } });
  };
  return {
    name: "RocketMQ",
    port,
    async makeTopic(topic) {
      // RocketMQ does not create topics for gRPC clients.
      await tool("topic", topic).catch((cause: unknown) => {
        throw new Error(`the topic ${topic} could not be made at ${url.host}; is RocketMQ running? npm run services`, {
          cause,
        });
      });
    },
    async emptyTopic() {},
    async removeTopic(topic) {
      await tool("admin", "deleteTopic", "-c", "DefaultCluster", "-t", topic, "-n", `127.0.0.1:${port + 1795}`);
    },
    bareProducer: async () => await producer(url.href),
    async close() {},
  };
}

async function producer(url: string): Promise<BareProducer> {
  const broker = await openBroker(url);
  await broker.check();
  return {
    async publish(batch) {
      const results = await broker.publish(batch, { signal: AbortSignal.timeout(10_000) });
      const refused = results.filter(({ status }) => status !== "sent").length;
      if (refused > 0) throw new Error(`RocketMQ refused ${refused} of ${batch.length} messages`);
    },
    close: () => broker.close(),
  };
}
