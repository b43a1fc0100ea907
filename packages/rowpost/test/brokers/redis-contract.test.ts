/**
 * The Redis broker under the broker contract: by URL on a server of its own with a password and a
 * file behind it, which is killed; and with a client that the user has, at ioredis' defaults.
 */
import { Redis } from "ioredis";
import { afterAll, beforeAll } from "vitest";
import { type RedisOptions, redis } from "../../src/brokers/redis/index.ts";
import { type BrokerHarness, createTcpProxy } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { bindBrokerContract } from "./bind.ts";
import { createAdmin, createStreamReader, type PrivateRedis, startPrivateRedis, uniqueName } from "./redis-server.ts";

const LIMIT = 1_048_576;
const FEATURES = { ordering: "key", reportsUnknownTopic: true, maxBodyBytes: LIMIT } as const;
const OPTIONS: Partial<RedisOptions> = { missingStream: "fail", maxBodyBytes: LIMIT };

/** Streams of one contract run; they exist, but for the last. */
async function makeTopics(admin: Redis) {
  const topics = {
    main: uniqueName("main"),
    other: uniqueName("other"),
    ordered: uniqueName("ordered"),
    unknown: uniqueName("unknown"),
  };
  for (const name of [topics.main, topics.other, topics.ordered]) {
    await admin.xgroup("CREATE", name, "contract", "$", "MKSTREAM");
  }
  return topics;
}

describeWithService("redis", "the Redis broker on a server of its own", () => {
  const password = "p@ss:w/rd";
  let server: PrivateRedis;
  let admin: Redis;

  beforeAll(async () => {
    server = await startPrivateRedis(["--requirepass", password]);
    admin = createAdmin(server.port, { password });
  }, 60_000);

  afterAll(async () => {
    admin?.disconnect();
    await server?.remove();
  });

  const faulty = async () => ({
    topics: await makeTopics(admin),
    faults: await createTcpProxy({ target: { port: server.port } }),
    features: FEATURES,
    consume: createStreamReader(admin),
    async restart() {
      await server.kill();
      await server.start();
    },
  });

  bindBrokerContract("redis by url", async (): Promise<BrokerHarness> => {
    const common = await faulty();
    const url = `redis://127.0.0.1:${common.faults.port}`;
    return {
      name: "redis",
      ...common,
      createBroker: () => redis({ url, password, ...OPTIONS }),
      createUnauthorized: () => redis({ url, password: "of-bad-news", ...OPTIONS }),
      close: () => common.faults.close(),
    };
  });

  bindBrokerContract("redis with a client at its defaults", async (): Promise<BrokerHarness> => {
    const common = await faulty();
    const { port } = common.faults;
    const client = new Redis({ port, password, lazyConnect: true });
    const wrong = new Redis({ port, password: "of-bad-news", lazyConnect: true });
    return {
      name: "redis client",
      ...common,
      createBroker: () => redis({ client, ...OPTIONS }),
      createUnauthorized: () => redis({ client: wrong, ...OPTIONS }),
      close: () => common.faults.close(),
    };
  });
});
