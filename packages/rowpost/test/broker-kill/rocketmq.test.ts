/** RocketMQ: a server of the test's own, killed with SIGKILL. */
import { rocketmq } from "../../src/brokers/rocketmq/index.ts";
import {
  createReader,
  createTopic,
  deleteTopic,
  keysRead,
  messageCount,
  startPrivateServer,
} from "../brokers/rocketmq-server.ts";
import { describeWithService } from "../services.ts";
import { type BrokerUnderTest, READ_WITHIN_MS } from "./broker-under-test.ts";
import { defineKillRounds } from "./kill-rounds.cases.ts";

async function startRocketmq(): Promise<BrokerUnderTest> {
  const server = await startPrivateServer();
  return {
    keepsCopies: true,
    createBroker: () => rocketmq({ endpoints: server.endpoint, ...server.keys, onWarning: () => undefined }),
    async makeTopic(name, kind) {
      await createTopic(server, name, kind === "ordered" ? "FIFO" : "NORMAL");
    },
    removeTopic: (name) => deleteTopic(server, name),
    takeAway: () => server.kill(),
    bringBack: () => server.start(),
    async readAll(topic) {
      const count = await messageCount(server, topic);
      return await keysRead(await createReader(server, [topic], { pollsAtOnce: 8 }), topic, count, READ_WITHIN_MS);
    },
    close: () => server.remove(),
  };
}

// The test starts its own; the shared one tells that what is needed for that is here.
describeWithService("rocketmq", "a broker of its own", () => defineKillRounds("rocketmq, killed", startRocketmq));
