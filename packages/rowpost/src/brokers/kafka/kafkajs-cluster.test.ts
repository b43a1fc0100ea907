import kafkajs from "kafkajs";
import { describe, expect, test } from "vitest";
import type { BatchOutcome, PartitionBatch } from "./driver.ts";
import type { KafkajsClient } from "./given-client.ts";
import { type Cluster, clusterOf, createProduce } from "./kafkajs-cluster.ts";

const batches = (...partitions: number[]): PartitionBatch[] =>
  partitions.map((partition) => ({ partition, records: [] }));

interface Answer {
  readonly partition: number;
  readonly errorCode: number;
  readonly baseOffset: bigint;
}

type Produce = (leader: number, ...partitions: number[]) => Promise<BatchOutcome[]>;

function producing(brokerPool: object): Produce {
  const produce = createProduce({ brokerPool } as Cluster, 1000);
  return (leader, ...partitions) => produce(leader, "orders", batches(...partitions));
}

function poolOf(nodes: ReadonlyMap<number, () => Promise<readonly Answer[]>>, sent: number[]): object {
  let isKnown = false;
  return {
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
}

const answers =
  (...list: Answer[]): (() => Promise<readonly Answer[]>) =>
  async () =>
    list;
const refused = async (): Promise<never> => {
  throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
};

describe("requests to several leaders", () => {
  test("one outcome for each partition, in the order asked", async () => {
    const sent: number[] = [];
    const nodes = new Map([
      [1, answers({ partition: 2, errorCode: 10, baseOffset: -1n }, { partition: 0, errorCode: 0, baseOffset: 70n })],
      [2, refused],
      [3, answers()],
    ]);
    const produce = producing(poolOf(nodes, sent));
    expect(await Promise.all([produce(1, 0, 2), produce(2, 1), produce(3, 4), produce(-1, 3, 5)])).toMatchObject([
      [{ baseOffset: 70n }, { fault: { kind: "answer", code: 10, name: "MESSAGE_TOO_LARGE" } }],
      [{ fault: { kind: "unreachable", code: "ECONNREFUSED" } }],
      [{ fault: { kind: "lost", code: "NO_RECEIPT" } }],
      [{ fault: { name: "LEADER_NOT_AVAILABLE" } }, { fault: { kind: "answer", name: "LEADER_NOT_AVAILABLE" } }],
    ]);
    // All of them share one metadata request.
    expect(sent.toSorted((left, right) => left - right)).toEqual([1, 2, 3, 1000]);
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
    const produce = producing(brokerPool);
    expect(await Promise.all([produce(1, 0), produce(2, 1)])).toMatchObject([
      [{ baseOffset: 7n }],
      [{ fault: { kind } }],
    ]);
  });
});

describe("the version of the request", () => {
  interface Carried {
    readonly request: { readonly apiVersion: number; encode(): Promise<{ readonly buffer: Buffer }> };
    readonly response: { decode(answer: Buffer): Promise<object> };
  }

  async function send(maxVersion: number | undefined): Promise<{ carried: Carried[]; outcomes: BatchOutcome[] }> {
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
    return { carried, outcomes: await producing(brokerPool)(1, 0) };
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
  expect(clusterOf(client)).toMatchObject({ brokerPool: {} });
});

test.each([
  ["nothing", {}],
  ["another pool", { [Symbol("private:Kafka:createCluster")]: () => ({ brokerPool: {} }) }],
])("a client with %s inside is refused, and told what to install", (_, client) => {
  expect(() => clusterOf(client as unknown as KafkajsClient)).toThrow(
    /built differently from 2\.2\.4.*@platformatic\/kafka/,
  );
});
