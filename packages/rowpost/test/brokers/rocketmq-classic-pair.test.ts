/** The classic RocketMQ broker on a cluster of two name servers and two primaries. */
import { expect, test } from "vitest";
import type { Broker } from "../../src/brokers/broker.ts";
import { rocketmqClassic } from "../../src/brokers/rocketmq-classic/index.ts";
import { describeWithService } from "../services.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { counts } from "./outcomes.ts";
import {
  type ClassicServer,
  createClassicReader,
  forAdmin,
  optionsFor,
  startClassicPair,
} from "./rocketmq-classic-server.ts";
import { createTopic, keysRead, messageCount } from "./rocketmq-server.ts";

/** Each kills one of the two, in turn, and starts it again, which takes some 30 s. */
const ROUNDS = Number(process.env["ROWPOST_CRASH_ROUNDS"] ?? 1);
const TOPIC = "pair";

// The test starts its own; the shared one tells that what is needed for that is here.
describeWithService("rocketmq4", "two of its own", () => {
  test("a primary and a name server die: the others go on, and the dead are used again once they are back", async () => {
    const pair = await startClassicPair();
    const nameServers = pair.map((server) => optionsFor(server).nameServers).join(";");
    const broker = rocketmqClassic({ ...optionsFor(pair[0]), nameServers });
    const sent: string[] = [];
    try {
      for (const server of pair) await createTopic(forAdmin(server), TOPIC);
      await reaches(broker, sent, pair);
      for (let round = 0; round < ROUNDS; round += 1) {
        const [victim, other] = round % 2 === 0 ? pair : ([pair[1], pair[0]] as const);
        const before = await messageCount(forAdmin(other), TOPIC);
        await victim.kill();
        // What was on its way to the dead one is unknown, or waits for another route.
        await expect.poll(async () => counts(await publish(broker, sent, 20)), { interval: 100 }).toEqual({ sent: 20 });
        expect(counts(await publish(broker, sent, 200))).toEqual({ sent: 200 });
        // They are stored, and counted a moment later.
        await expect.poll(() => messageCount(forAdmin(other), TOPIC)).toBeGreaterThanOrEqual(before + 220);
        await victim.start();
        await reaches(broker, sent, [victim]);
      }
      const read = await Promise.all(pair.map((server) => readAll(server)));
      const stored = new Set(read.flat());
      expect(sent.filter((key) => !stored.has(key))).toEqual([]);
    } finally {
      await broker.close();
      await Promise.all(pair.map((server) => server.remove()));
    }
  }, 1_500_000);
});

/** Half of them with an ordering key. Keys of those that are sent are added to `sent`. */
async function publish(broker: Broker, sent: string[], count: number): Promise<Awaited<ReturnType<Broker["publish"]>>> {
  const from = sent.length;
  const batch = Array.from({ length: count }, (_, index) => {
    const orderingKey = index % 2 === 0 ? `o-${index % 14}` : undefined;
    return outgoing(`m-${from}-${index}-${process.hrtime.bigint()}`, { topic: TOPIC, orderingKey });
  });
  const results = await broker.publish(batch, noDeadline());
  sent.push(...batch.filter((_, index) => results[index]?.status === "sent").map(({ key }) => key));
  return results;
}

/** Publishes until each of these has more messages than before. */
async function reaches(broker: Broker, sent: string[], servers: readonly ClassicServer[]): Promise<void> {
  const countAll = (): Promise<number[]> => Promise.all(servers.map((server) => messageCount(forAdmin(server), TOPIC)));
  const before = await countAll();
  const grown = async (): Promise<boolean> => {
    await publish(broker, sent, 20);
    return (await countAll()).every((count, index) => count > (before[index] ?? 0));
  };
  await expect.poll(grown, { timeout: 60_000, interval: 500 }).toBe(true);
}

async function readAll(server: ClassicServer): Promise<string[]> {
  const count = await messageCount(forAdmin(server), TOPIC);
  return await keysRead(await createClassicReader(server, [TOPIC]), TOPIC, count, 60_000);
}
