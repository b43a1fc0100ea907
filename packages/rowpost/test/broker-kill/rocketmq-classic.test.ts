/** RocketMQ 4.9 by its classic protocol: a server of the test's own, killed with SIGKILL. */
import { rocketmqClassic } from "../../src/brokers/rocketmq-classic/index.ts";
import { createClassicReader, forAdmin, optionsFor, startClassicServer } from "../brokers/rocketmq-classic-server.ts";
import { createTopic, deleteTopic, keysRead, messageCount } from "../brokers/rocketmq-server.ts";
import { describeWithService } from "../services.ts";
import { type BrokerUnderTest, READ_WITHIN_MS } from "./broker-under-test.ts";
import { defineKillRounds } from "./kill-rounds.cases.ts";

async function startClassic(): Promise<BrokerUnderTest> {
  const server = await startClassicServer("rocketmq4");
  const admin = forAdmin(server);
  return {
    keepsCopies: true,
    createBroker: () => rocketmqClassic(optionsFor(server)),
    async makeTopic(name) {
      await createTopic(admin, name);
    },
    removeTopic: (name) => deleteTopic(admin, name),
    takeAway: () => server.kill(),
    bringBack: () => server.start(),
    async readAll(topic) {
      const count = await messageCount(admin, topic);
      return await keysRead(await createClassicReader(server, [topic]), topic, count, READ_WITHIN_MS);
    },
    close: () => server.remove(),
  };
}

// The test starts its own; the shared one tells that what is needed for that is here.
describeWithService("rocketmq4", "a broker of its own", () =>
  defineKillRounds("rocketmq-classic, killed", startClassic),
);
