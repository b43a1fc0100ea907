/**
 * Several leaders, of which tests have no servers: which request goes where, and what each
 * partition is told.
 */
import kafkajs from "kafkajs";
import { describe, expect, test } from "vitest";
import type { PartitionBatch } from "./driver.ts";
import type { KafkajsClient } from "./given-client.ts";
import { directSender } from "./kafkajs-direct.ts";
import { settingsFrom } from "./options.ts";

const settings = settingsFrom({ brokers: "a:9092" });
const batches = (...partitions: number[]): PartitionBatch[] =>
  partitions.map((partition) => ({ partition, records: [] }));

interface Answer {
  readonly partition: number;
  readonly errorCode: number;
  readonly baseOffset: bigint;
}

/** The inside of kafkajs with these nodes, each with its answer. */
function clientOf(nodes: ReadonlyMap<number, () => Promise<readonly Answer[]>>, sent: number[]): KafkajsClient {
  let isKnown = false;
  const brokerPool = {
    getNodeIds: () => (isKnown ? [...nodes.keys()].map(String) : []),
    async refreshMetadata(topics: readonly string[]) {
      sent.push(topics.length * 1000);
      isKnown = true;
    },
    async findBroker({ nodeId }: { readonly nodeId: number }) {
      const send = async (): Promise<unknown> => {
        sent.push(nodeId);
        return { partitions: await nodes.get(nodeId)?.() };
      };
      return { connectionPool: { send }, versions: { 0: { maxVersion: 13 } } };
    },
  };
  return { [Symbol("private:Kafka:createCluster")]: () => ({ brokerPool }) } as unknown as KafkajsClient;
}

const answers =
  (...list: Answer[]): (() => Promise<readonly Answer[]>) =>
  async () =>
    list;
const refused = async (): Promise<never> => {
  throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
};

describe("partitions of several leaders", () => {
  test("one request for each leader, one outcome for each partition, in the order asked", async () => {
    const sent: number[] = [];
    const client = clientOf(
      new Map([
        [1, answers({ partition: 2, errorCode: 10, baseOffset: -1n }, { partition: 0, errorCode: 0, baseOffset: 70n })],
        [2, refused],
        [3, answers()],
      ]),
      sent,
    );
    let asked = 0;
    const describe = async (): Promise<{ leaders: number[] }> => {
      asked += 1;
      return { leaders: [1, 2, 1, -1, 3] };
    };
    const sender = directSender(client, { settings, describe });
    const outcomes = await sender?.send("orders", batches(0, 1, 2, 3, 4, 5));
    expect(outcomes).toMatchObject([
      { baseOffset: 70n },
      { fault: { kind: "unreachable", code: "ECONNREFUSED" } },
      { fault: { kind: "answer", code: 10, name: "MESSAGE_TOO_LARGE" } },
      { fault: { kind: "answer", name: "LEADER_NOT_AVAILABLE" } },
      { fault: { kind: "lost", code: "NO_RECEIPT" } },
      { fault: { kind: "answer", name: "LEADER_NOT_AVAILABLE" } },
    ]);
    // All of them ask for the nodes once.
    expect(sent.toSorted((left, right) => left - right)).toEqual([1, 2, 3, 1000]);
    await Promise.all([
      sender?.send("orders", batches(0)),
      sender?.send("stock", batches(0)),
      sender?.send("stock", batches(2)),
    ]);
    expect(asked).toBe(2);
  });
});

describe("a leader that cannot be reached while another one's request is written", () => {
  const fails =
    (fault: string): (() => Promise<never>) =>
    async () => {
      throw Object.assign(new Error(fault), { code: fault });
    };

  test.each([
    ["a request that was never written", "findBroker", "unreachable"],
    ["one that was", "send", "lost"],
  ] as const)("%s, failing in %s: %s", async (_, failing, kind) => {
    let isWritten = (): void => undefined;
    const other = new Promise<void>((resolve) => {
      isWritten = resolve;
    });
    const brokerPool = {
      getNodeIds: () => ["1", "2"],
      refreshMetadata: refused,
      async findBroker({ nodeId }: { readonly nodeId: number }) {
        if (nodeId === 2 && failing === "findBroker") await other.then(fails("ECONNREFUSED"));
        const send = async ({ request }: { readonly request: { encode(): Promise<unknown> } }): Promise<unknown> => {
          await request.encode();
          if (nodeId === 2) return await fails("ECONNRESET")();
          isWritten();
          return { partitions: [{ partition: 0, errorCode: 0, baseOffset: 7n }] };
        };
        return { connectionPool: { send }, versions: null };
      },
    };
    const client = { [Symbol("private:Kafka:createCluster")]: () => ({ brokerPool }) } as unknown as KafkajsClient;
    const sender = directSender(client, { settings, describe: async () => ({ leaders: [1, 2] }) });
    expect(await sender?.send("orders", batches(0, 1))).toMatchObject([{ baseOffset: 7n }, { fault: { kind } }]);
  });
});

describe("the version of the request", () => {
  interface Carried {
    readonly request: { readonly apiVersion: number; encode(): Promise<{ readonly buffer: Buffer }> };
    readonly response: { decode(answer: Buffer): Promise<object> };
  }

  async function send(maxVersion: number | undefined): Promise<{ carried: Carried[]; outcomes: object | undefined }> {
    const carried: Carried[] = [];
    const brokerPool = {
      getNodeIds: () => ["1"],
      refreshMetadata: refused,
      async findBroker() {
        const pool = {
          async send(protocol: Carried) {
            carried.push(protocol);
            return { partitions: [{ partition: 0, errorCode: 0, baseOffset: 3n }] };
          },
        };
        return { connectionPool: pool, versions: maxVersion === undefined ? null : { 0: { maxVersion } } };
      },
    };
    const client = { [Symbol("private:Kafka:createCluster")]: () => ({ brokerPool }) } as unknown as KafkajsClient;
    const sender = directSender(client, { settings, describe: async () => ({ leaders: [1] }) });
    const outcomes = await sender?.send("orders", batches(0));
    return { carried, outcomes };
  }

  test.each([
    [undefined, 3, 0],
    [3, 3, 0],
    [5, 5, 0],
    [6, 6, 250],
    [13, 7, 250],
  ])(
    "a broker that takes up to %s gets %i, and a quota is waited for by us for %i ms",
    async (most, version, waitMs) => {
      const { carried, outcomes } = await send(most);
      expect(outcomes).toEqual([{ baseOffset: 3n }]);
      const [{ request, response }] = carried as [Carried];
      expect(request.apiVersion).toBe(version);
      expect((await request.encode()).buffer.includes("orders")).toBe(true);
      const noTopics = Buffer.from([0, 0, 0, 0, 0, 0, 0, 250]);
      expect(await response.decode(noTopics)).toEqual({ partitions: [], clientSideThrottleTime: waitMs });
    },
  );

  test("one that is too old is not sent anything", async () => {
    const { carried, outcomes } = await send(2);
    expect(carried).toEqual([]);
    expect(outcomes).toMatchObject([{ fault: { kind: "answer", name: "UNSUPPORTED_VERSION" } }]);
  });
});

test("the installed kafkajs is built as it is used here", () => {
  const client = new kafkajs.Kafka({ brokers: ["127.0.0.1:1"], logLevel: 0 }) as unknown as KafkajsClient;
  const describe = async (): Promise<{ leaders: number[] }> => ({ leaders: [] });
  const sender = directSender(client, { settings, describe });
  expect(sender).toMatchObject({ combines: true });
});

test("a client that is built differently is not touched", () => {
  const describe = async (): Promise<{ leaders: number[] }> => ({ leaders: [] });
  expect(directSender({} as KafkajsClient, { settings, describe })).toBeUndefined();
});
