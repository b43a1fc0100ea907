/**
 * The queue as a broker under the broker contract, on each engine; on the servers behind a proxy
 * that breaks the connection.
 *
 * Left out: a restart of the server, which belongs to all tests, and a request whose answer does
 * not come back (the unknown commit is in relayed.test.ts); on SQLite also what breaks a connection
 * or refuses a user, because it has neither.
 */
import { afterAll, beforeAll, describe } from "vitest";
import type { Broker } from "../../src/brokers/broker.ts";
import { queueBroker } from "../../src/brokers/queue/index.ts";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { createQueue, type Queue } from "../../src/queue/index.ts";
import { type ArrivedMessage, type BrokerHarness, createTcpProxy } from "../../src/testing/index.ts";
import { bindBrokerContract } from "../brokers/bind.ts";
import { appendedTo } from "./appended.ts";
import { describeOnEach, type QueuePlace } from "./places.ts";

/** A body above what a message may have. */
const REFUSED_BYTES = 4_194_305;

describeOnEach("the queue as a broker", (make, { isServer }) => {
  let place: QueuePlace;
  let queue: Queue;

  beforeAll(async () => {
    place = await make();
    queue = createQueue({ database: place.open() });
    await queue.migrate();
    await queue.createTopic({ topic: "orders" });
    await queue.createTopic({ topic: "billing", partitions: 3 });
  });
  afterAll(async () => {
    await queue?.close();
    await place?.drop();
  });

  /** With what it uses, which somebody has to close. */
  function brokerOn(database: Database): Broker {
    const own = createQueue({ database });
    const broker = queueBroker({ queue: own });
    return {
      ...broker,
      async close() {
        await broker.close();
        await own.close();
        await database.close();
      },
    };
  }

  async function faulty(): Promise<Partial<BrokerHarness>> {
    const address = new URL(place.address.url);
    const proxy = await createTcpProxy({ target: { host: address.hostname, port: Number(address.port) } });
    const open = (change: (url: URL) => void): Database => {
      const url = new URL(place.address.url);
      url.port = String(proxy.port);
      change(url);
      return place.address.kind === "mysql" ? mysql({ url: url.href }) : postgres({ url: url.href });
    };
    return {
      faults: proxy,
      handsOverInSteps: true,
      createBroker: () => brokerOn(open(() => {})),
      createUnauthorized: () =>
        brokerOn(
          open((url) => {
            url.username = "nobody_of_that_name";
            url.password = "of-bad-news";
          }),
        ),
      close: () => proxy.close(),
    };
  }

  describe("contract", () => {
    bindBrokerContract("queue", async (): Promise<BrokerHarness> => {
      const seenAtMs = new Map<string, number>();
      return {
        name: "queue",
        createBroker: () => brokerOn(place.open()),
        features: { ordering: "key", reportsUnknownTopic: true, maxBodyBytes: undefined },
        refusedBodyBytes: REFUSED_BYTES,
        topics: { main: "orders", other: "billing", ordered: "billing", unknown: "nowhere" },
        async consume({ topic, keyPrefix, count, withinMs }) {
          const end = performance.now() + withinMs;
          for (;;) {
            const rows = await appendedTo(place, topic);
            const ours = rows.filter(({ key }) => key?.startsWith(keyPrefix));
            for (const { id } of ours) if (!seenAtMs.has(id)) seenAtMs.set(id, Date.now());
            if (new Set(ours.map(({ key }) => key)).size >= count || performance.now() >= end) {
              return ours.map((row) => received(row, seenAtMs.get(row.id) ?? 0));
            }
          }
        },
        ...(isServer ? await faulty() : {}),
      };
    });
  });
});

function received(row: Awaited<ReturnType<typeof appendedTo>>[number], receivedAtMs: number): ArrivedMessage {
  const { body, contentType, headers } = row;
  const isBytes = contentType?.endsWith(";base64") === true;
  return {
    body: Buffer.from(body, isBytes ? "base64" : "utf8"),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    contentType: isBytes ? contentType.slice(0, -";base64".length) : (contentType ?? "application/json"),
    receivedAtMs,
  };
}
