/**
 * Sends requests over the connections of kafkajs without its producer. This adapter encodes the
 * request and reads the answer (`produce.ts`); kafkajs connects, logs in, numbers requests and
 * times them out. Each partition thus has its own outcome, one request carries all partitions of a
 * leader, and 1,000 messages take 4.5 ms of CPU instead of 22 (330 bytes each, 4 partitions,
 * Node.js 20; the server 3.6 instead of 7).
 *
 * The connections are reached the way kafkajs's own producers reach them: through the cluster
 * factory under a symbol of the `Kafka` object, which is not a public interface. A kafkajs built
 * differently is refused, and `kafkajs-cluster.test.ts` fails if the installed one is.
 */
import { ConfigurationError, describeError } from "../../runtime/errors.ts";
import { type BatchOutcome, FaultError, type PartitionBatch, sameForAll, type TopicDescription } from "./driver.ts";
import { type Fault, INVALID_RECORD, LEADER_NOT_AVAILABLE, nameOfCode, UNSUPPORTED_VERSION } from "./failures.ts";
import type { KafkajsClient } from "./given-client.ts";
import { faultOf } from "./kafkajs-faults.ts";
import { decodeProduced, encodeProduce, type ProducedPartition } from "./produce.ts";

export interface Cluster {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  /**
   * Used instead of `cluster.findBroker`, which refreshes all topics when a node does not answer.
   */
  readonly brokerPool: {
    getNodeIds(): readonly string[];
    refreshMetadata(topics: readonly string[]): Promise<unknown>;
    findBroker(options: { readonly nodeId: number }): Promise<Node>;
    findConnectedBroker(): Promise<Node>;
  };
}

interface Node {
  readonly connectionPool: { send(protocol: object): Promise<{ readonly partitions: readonly ProducedPartition[] }> };
  readonly versions: Readonly<Record<number, { readonly maxVersion: number } | undefined>> | null;
  /** Rejects when one of the topics has an error. */
  metadata(topics: readonly string[]): Promise<{ readonly topicMetadata: readonly TopicMetadata[] }>;
}

interface TopicMetadata {
  readonly topic: string;
  readonly partitionMetadata: readonly { readonly partitionId: number; readonly leader: number }[];
}

/** Description of the symbol under which a `Kafka` object keeps its cluster factory. */
const CREATE_CLUSTER = "private:Kafka:createCluster";
const USED = ["getNodeIds", "refreshMetadata", "findBroker", "findConnectedBroker"];

/** A cluster of its own, not connected yet. Throws {@link ConfigurationError}. */
export function clusterOf(client: KafkajsClient): Cluster {
  const symbol = Object.getOwnPropertySymbols(client).find(({ description }) => description === CREATE_CLUSTER);
  const create: unknown = symbol === undefined ? undefined : Reflect.get(client, symbol);
  if (typeof create === "function") {
    const cluster = (create as (options: object) => Partial<Cluster>)({ allowAutoTopicCreation: false });
    const pool = (cluster.brokerPool ?? {}) as Readonly<Record<string, unknown>>;
    if (USED.every((name) => typeof pool[name] === "function")) return cluster as Cluster;
  }
  throw new ConfigurationError(
    "this kafkajs is built differently from 2.2.4, whose connections are used; install that one, or @platformatic/kafka",
  );
}

/** About topics; with none, whether the cluster answers. Rejects with a {@link FaultError}. */
export async function ask({ brokerPool }: Cluster, topics: readonly string[]): Promise<readonly TopicMetadata[]> {
  try {
    return (await (await brokerPool.findConnectedBroker()).metadata(topics)).topicMetadata;
  } catch (cause) {
    throw new FaultError(faultOf(cause, true), { cause });
  }
}

export async function describeTopic(cluster: Cluster, topic: string): Promise<TopicDescription> {
  const [answer] = await ask(cluster, [topic]);
  const leaders = new Array<number>(answer?.partitionMetadata.length ?? 0).fill(-1);
  for (const { partitionId, leader } of answer?.partitionMetadata ?? []) leaders[partitionId] = leader;
  return { leaders };
}

/** Asks for the cluster's nodes once, however many requests need them. */
export function createProduce(
  { brokerPool }: Cluster,
  requestTimeoutMs: number,
): (leader: number, topic: string, batches: readonly PartitionBatch[]) => Promise<BatchOutcome[]> {
  let findingNodes: Promise<unknown> | undefined;

  async function nodeOf(leader: number, topic: string): Promise<Node> {
    if (!brokerPool.getNodeIds().includes(String(leader))) {
      findingNodes ??= brokerPool.refreshMetadata([topic]).finally(() => {
        findingNodes = undefined;
      });
      await findingNodes;
    }
    return await brokerPool.findBroker({ nodeId: leader });
  }

  return async (leader, topic, batches) => {
    if (leader < 0) return sameForAll(batches, faultOfCode(LEADER_NOT_AVAILABLE));
    let bytes: Buffer;
    try {
      bytes = encodeProduce(topic, batches, requestTimeoutMs);
    } catch (error) {
      return sameForAll(batches, { ...faultOfCode(INVALID_RECORD), text: describeError(error) });
    }
    // Sends while others wait for answers. kafkajs encodes once it is connected, and writes at
    // once.
    let isWritten = false;
    const written = (): Buffer => {
      isWritten = true;
      return bytes;
    };
    try {
      const { connectionPool, versions } = await nodeOf(leader, topic);
      const version = Math.min(versions?.[API_PRODUCE]?.maxVersion ?? OLDEST, NEWEST);
      if (version < OLDEST) return sameForAll(batches, faultOfCode(UNSUPPORTED_VERSION));
      const request = { request: requestOf(version, written), response: responseOf(version) };
      const { partitions } = await connectionPool.send(request);
      const answered = new Map(partitions.map((each) => [each.partition, producedOf(each)]));
      return batches.map(({ partition }) => answered.get(partition) ?? { fault: NO_RECEIPT });
    } catch (error) {
      return sameForAll(batches, faultOf(error, !isWritten));
    }
  };
}

const API_PRODUCE = 0;
/** Kafka 0.11, the first version with headers. */
const OLDEST = 3;
/** The version that kafkajs itself sends. Additions of later ones are not read or written here. */
const NEWEST = 7;
/** From this version on, a broker over quota answers at once and the client waits. */
const CLIENT_WAITS = 6;

function requestOf(apiVersion: number, encoded: () => Buffer): object {
  return {
    apiKey: API_PRODUCE,
    apiVersion,
    apiName: "Produce",
    async encode() {
      const bytes = encoded();
      // The part of kafkajs's encoder that gets copied.
      return { buf: bytes, buffer: bytes };
    },
  };
}

function responseOf(version: number): object {
  return {
    async decode(answer: Buffer) {
      const { partitions, throttleMs } = decodeProduced(answer, version);
      return { partitions, clientSideThrottleTime: version >= CLIENT_WAITS ? throttleMs : 0 };
    },
    // kafkajs would apply the first error to all partitions.
    async parse(decoded: unknown) {
      return decoded;
    },
  };
}

const NO_RECEIPT: Fault = { kind: "lost", code: "NO_RECEIPT", text: "no offset for this partition" };

function producedOf({ errorCode, baseOffset }: ProducedPartition): BatchOutcome {
  if (errorCode !== 0) return { fault: faultOfCode(errorCode) };
  return baseOffset >= 0n ? { baseOffset } : { fault: NO_RECEIPT };
}

function faultOfCode(code: number): Fault {
  return { kind: "answer", code, name: nameOfCode(code), text: "" };
}
