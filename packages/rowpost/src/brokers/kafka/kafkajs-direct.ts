/**
 * Sending over the connections of kafkajs without its producer: we encode the request and read the
 * answer (`produce.ts`), kafkajs connects, logs in, numbers requests and times them. So each
 * partition of a request has its own outcome, one request carries all of a leader, and 1,000
 * messages take 4.5 ms of CPU instead of 22 (330 bytes each, 4 partitions, Node.js 20; the server
 * 3.6 instead of 7).
 *
 * That figure is why there is a third way to send, beside the producers of the two packages. The
 * connections are reached as kafkajs's own producers reach them: by what makes its clusters, under
 * a symbol of the `Kafka` object, which is no public interface. A kafkajs that is built differently
 * is used through its producer, five times as dear but right, and `kafkajs-direct.test.ts` fails
 * for the installed one, so that the change is noticed.
 */

import { describeError } from "../../runtime/errors.ts";
import { type BatchOutcome, FaultError, type PartitionBatch, sameForAll, type TopicDescription } from "./driver.ts";
import { type Fault, INVALID_RECORD, LEADER_NOT_AVAILABLE, nameOfCode, UNSUPPORTED_VERSION } from "./failures.ts";
import type { KafkajsClient } from "./given-client.ts";
import { faultOf } from "./kafkajs-faults.ts";
import type { Sender } from "./kafkajs-producer.ts";
import type { Settings } from "./options.ts";
import { decodeProduced, encodeProduce, type ProducedPartition } from "./produce.ts";

/** The cluster of kafkajs, as far as it is used here. */
interface Cluster {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  /**
   * Behind `cluster.findBroker`, which asks about all topics there are when a node does not answer,
   * and may tell another topic's trouble.
   */
  readonly brokerPool: {
    getNodeIds(): readonly string[];
    /** Asks the cluster about topics, and so learns its nodes. */
    refreshMetadata(topics: readonly string[]): Promise<unknown>;
    /** Connected, and logged in. */
    findBroker(options: { readonly nodeId: number }): Promise<Node>;
  };
}

interface Node {
  readonly connectionPool: { send(protocol: object): Promise<{ readonly partitions: readonly ProducedPartition[] }> };
  readonly versions: Readonly<Record<number, { readonly maxVersion: number } | undefined>> | null;
}

type Outcomes = readonly (readonly [PartitionBatch, BatchOutcome])[];

interface DirectOptions {
  readonly settings: Settings;
  /** Asks the cluster. Rejects with a {@link FaultError}. */
  readonly describe: (topic: string) => Promise<TopicDescription>;
}

/** {@link Sender}, and the questions that keep it informed. */
interface DirectSender extends Sender {
  readonly describe: DirectOptions["describe"];
}

/** Undefined when this kafkajs is built differently. */
export function directSender(client: KafkajsClient, options: DirectOptions): DirectSender | undefined {
  const cluster = clusterOf(client);
  return cluster === undefined ? undefined : senderOf(cluster, options);
}

function senderOf(cluster: Cluster, { settings, describe }: DirectOptions): DirectSender {
  const { brokerPool } = cluster;
  /** The latest description of each topic: who leads. */
  const known = new Map<string, TopicDescription>();
  /** Questions on their way, for all that need the answer. */
  const learning = new Map<string, Promise<TopicDescription>>();
  let findingNodes: Promise<unknown> | undefined;

  async function learn(topic: string): Promise<TopicDescription> {
    const description = await describe(topic);
    known.set(topic, description);
    return description;
  }

  function descriptionOf(topic: string): TopicDescription | Promise<TopicDescription> {
    const found = known.get(topic) ?? learning.get(topic);
    if (found !== undefined) return found;
    const question = learn(topic).finally(() => learning.delete(topic));
    learning.set(topic, question);
    return question;
  }

  async function nodeOf(leader: number, topic: string): Promise<Node> {
    if (!brokerPool.getNodeIds().includes(String(leader))) {
      findingNodes ??= brokerPool.refreshMetadata([topic]).finally(() => {
        findingNodes = undefined;
      });
      await findingNodes;
    }
    return await brokerPool.findBroker({ nodeId: leader });
  }

  /** One request. */
  async function sendTo(leader: number, topic: string, batches: readonly PartitionBatch[]): Promise<Outcomes> {
    if (leader < 0) return batches.map((batch) => [batch, outcomeOf(LEADER_NOT_AVAILABLE)]);
    let bytes: Buffer;
    try {
      bytes = encodeProduce(topic, batches, settings.requestTimeoutMs);
    } catch (error) {
      const fault: Fault = { ...outcomeOf(INVALID_RECORD).fault, text: describeError(error) };
      return batches.map((batch) => [batch, { fault }]);
    }
    // Of this request alone: others are written meanwhile. kafkajs encodes once it is connected and
    // logged in, and writes at once.
    let isWritten = false;
    try {
      const { connectionPool, versions } = await nodeOf(leader, topic);
      const version = Math.min(versions?.[API_PRODUCE]?.maxVersion ?? OLDEST, NEWEST);
      if (version < OLDEST) return batches.map((batch) => [batch, outcomeOf(UNSUPPORTED_VERSION)]);
      const { partitions } = await connectionPool.send({
        request: requestOf(version, () => {
          isWritten = true;
          return bytes;
        }),
        response: responseOf(version),
      });
      const answered = new Map(partitions.map((each) => [each.partition, producedOf(each)]));
      return batches.map((batch) => [batch, answered.get(batch.partition) ?? { fault: NO_RECEIPT }]);
    } catch (error) {
      const fault = faultOf(error, !isWritten);
      return batches.map((batch) => [batch, { fault }]);
    }
  }

  async function send(topic: string, batches: readonly PartitionBatch[]): Promise<BatchOutcome[]> {
    let leaders: readonly number[];
    try {
      ({ leaders } = await descriptionOf(topic));
    } catch (error) {
      return sameForAll(batches, error instanceof FaultError ? error.fault : faultOf(error, true));
    }
    const leads = ({ partition }: PartitionBatch): number => leaders[partition] ?? -1;
    const asked = [...new Set(batches.map(leads))];
    const answers = await Promise.all(
      asked.map((leader) =>
        sendTo(
          leader,
          topic,
          batches.filter((batch) => leads(batch) === leader),
        ),
      ),
    );
    const outcomes = new Map(answers.flat());
    return batches.map((batch) => outcomes.get(batch) ?? { fault: NO_RECEIPT });
  }

  return {
    combines: true,
    connect: () => cluster.connect(),
    disconnect: () => cluster.disconnect(),
    describe: learn,
    send,
  };
}

/** How kafkajs calls the symbol under which a `Kafka` object keeps what makes its clusters. */
const CREATE_CLUSTER = "private:Kafka:createCluster";

function clusterOf(client: KafkajsClient): Cluster | undefined {
  const symbol = Object.getOwnPropertySymbols(client).find(({ description }) => description === CREATE_CLUSTER);
  const create: unknown = symbol === undefined ? undefined : Reflect.get(client, symbol);
  if (typeof create !== "function") return undefined;
  const cluster = (create as (options: object) => Partial<Cluster>)({ allowAutoTopicCreation: false });
  const pool = (cluster.brokerPool ?? {}) as Readonly<Record<string, unknown>>;
  const isKnown = ["getNodeIds", "refreshMetadata", "findBroker"].every((name) => typeof pool[name] === "function");
  return isKnown ? (cluster as Cluster) : undefined;
}

const API_PRODUCE = 0;
/** Kafka 0.11, the first with headers. */
const OLDEST = 3;
/**
 * The one that kafkajs itself sends. What later ones add (words for an error, shorter lengths) is
 * not read or written here.
 */
const NEWEST = 7;
/**
 * From here on the broker answers at once when a quota is used up, and the client is the one who
 * waits.
 */
const CLIENT_WAITS = 6;

function requestOf(apiVersion: number, encoded: () => Buffer): object {
  return {
    apiKey: API_PRODUCE,
    apiVersion,
    apiName: "Produce",
    async encode() {
      const bytes = encoded();
      // As much of kafkajs's encoder as is copied from.
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
    // Where kafkajs would make the first error that of all partitions.
    async parse(decoded: unknown) {
      return decoded;
    },
  };
}

const NO_RECEIPT: Fault = { kind: "lost", code: "NO_RECEIPT", text: "no offset for this partition" };

/** What the answer says of a partition. */
function producedOf({ errorCode, baseOffset }: ProducedPartition): BatchOutcome {
  if (errorCode !== 0) return outcomeOf(errorCode);
  return baseOffset >= 0n ? { baseOffset } : { fault: NO_RECEIPT };
}

function outcomeOf(code: number): { readonly fault: Fault & { readonly kind: "answer" } } {
  return { fault: { kind: "answer", code, name: nameOfCode(code), text: "" } };
}
