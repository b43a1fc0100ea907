/** Kafka: a server of the test's own, killed with SIGKILL. */
import { kafka } from "../../src/brokers/kafka/index.ts";
import { createTopics, deleteTopics, readAll, startPrivateServer } from "../brokers/kafka-server.ts";
import { describeWithService } from "../services.ts";
import { type BrokerUnderTest, READ_WITHIN_MS } from "./broker-under-test.ts";
import { defineKillRounds } from "./kill-rounds.cases.ts";

async function startKafka(): Promise<BrokerUnderTest> {
  const server = await startPrivateServer();
  return {
    keepsCopies: true,
    createBroker: () => kafka({ brokers: server.address }),
    makeTopic: (topic) => createTopics(server.address, [{ topic, numPartitions: 4 }]),
    removeTopic: (topic) => deleteTopics(server.address, [topic]),
    takeAway: () => server.kill(),
    bringBack: () => server.start(),
    readAll: (topic) => readAll(server.address, topic, READ_WITHIN_MS),
    close: () => server.remove(),
  };
}

// The test starts its own; the shared one tells that what is needed for that is here.
describeWithService("kafka", "a broker of its own", () => defineKillRounds("kafka, killed", startKafka));
