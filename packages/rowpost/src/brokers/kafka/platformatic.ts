/**
 * The driver on \@platformatic/kafka, which needs Node.js 22.22 or newer. Its error for a request
 * holds the answer's parts, so that each partition has its own outcome. Its retries, idempotence,
 * and second try at a leader that moved are off.
 */

import { isIP, type Socket } from "node:net";
import { closeQuietly } from "../../runtime/deadline.ts";
import { nodeTls } from "../settings/tls-options.ts";
import {
  type BatchOutcome,
  type Driver,
  type ErrorLike,
  FaultError,
  findError,
  type PartitionBatch,
  type Session,
  systemCode,
  type TopicDescription,
  wordsOf,
} from "./driver.ts";
import { type Fault, failureOfSend, LEADER_NOT_AVAILABLE, nameOfCode, UNKNOWN_TOPIC } from "./failures.ts";
import type { Settings } from "./options.ts";

export interface PlatformaticModule {
  readonly Producer: new (options: object) => object;
}

interface Producer {
  send(options: object): Promise<{ readonly offsets?: readonly Stored[] }>;
  metadata(options: object): Promise<{
    readonly topics: ReadonlyMap<string, { readonly partitions: readonly { readonly leader: number }[] } | undefined>;
  }>;
  close(force: boolean): Promise<void>;
  readonly connections: Iterable<readonly [string, { readonly socket: Socket | undefined }]>;
}

interface Stored {
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
}

/** A driver with the producer passed in, or with its own producer for each session. */
export function platformaticDriver(module: PlatformaticModule | undefined, settings: Settings): Driver {
  const given = settings.given?.kind === "platformatic" ? settings.given.client : undefined;
  return {
    endsAttempts: given === undefined,
    async open(signal) {
      const producer = given ?? (module === undefined ? undefined : new module.Producer(producerOptions(settings)));
      if (producer === undefined) throw new TypeError("neither the package nor a producer of @platformatic/kafka");
      return await openSession(producer as Producer, given === undefined, signal);
    },
  };
}

function producerOptions({ brokers, clientId, tls, sasl, connectTimeoutMs, requestTimeoutMs }: Settings): object {
  return {
    clientId,
    bootstrapBrokers: brokers,
    connectTimeout: connectTimeoutMs,
    requestTimeout: requestTimeoutMs,
    timeout: requestTimeoutMs,
    retries: 0,
    idempotent: false,
    autocreateTopics: false,
    // The adapter refreshes metadata itself when a leader has moved.
    metadataMaxAge: 300_000,
    ...(tls === undefined ? {} : { tls: nodeTls(tls), tlsServerName: tls.serverName ?? hasNames(brokers) }),
    ...(sasl === undefined ? {} : { sasl: { ...sasl, mechanism: sasl.mechanism.toUpperCase() } }),
  };
}

/**
 * Servers that share an address are told apart by the requested host name, which an IP address is
 * not.
 */
function hasNames(brokers: readonly string[]): boolean {
  return brokers.every((broker) => isIP(broker.replace(/:\d+$/, "")) === 0);
}

async function openSession(producer: Producer, ours: boolean, signal: AbortSignal): Promise<Session> {
  const close = async (): Promise<void> => {
    if (!ours) return;
    const sockets = [...producer.connections].map(([, { socket }]) => socket);
    await closeQuietly(producer.close(true));
    for (const socket of sockets) socket?.destroy();
  };
  const ask = async (topics: readonly string[]): ReturnType<Producer["metadata"]> => {
    try {
      // A copy, because the package sorts the list.
      return await producer.metadata({ topics: [...topics], forceUpdate: true, autocreateTopics: false, retries: 0 });
    } catch (cause) {
      throw new FaultError(faultOf(cause), { cause });
    }
  };
  const giveUp = (): void => void close();
  signal.addEventListener("abort", giveUp);
  if (signal.aborted) giveUp();
  try {
    await ask([]);
  } catch (error) {
    await close();
    throw error;
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
  return {
    async check() {
      await ask([]);
    },
    async describe(topic): Promise<TopicDescription> {
      const partitions = (await ask([topic])).topics.get(topic)?.partitions ?? [];
      return { leaders: Array.from(partitions, (partition) => partition?.leader ?? -1) };
    },
    send: (_leader, topic, batches) => sendAll(producer, topic, batches),
    close,
  };
}

async function sendAll(producer: Producer, topic: string, batches: readonly PartitionBatch[]): Promise<BatchOutcome[]> {
  const messages = batches.flatMap(({ partition, records }) =>
    records.map(({ key, value, headers }) => ({ topic, partition, key, value, headers: bytesOf(headers) })),
  );
  try {
    const { offsets = [] } = await producer.send({
      messages,
      acks: ALL_REPLICAS,
      idempotent: false,
      autocreateTopics: false,
      repeatOnStaleMetadata: false,
    });
    return outcomes(topic, batches, offsets, {
      kind: "lost",
      code: "NO_RECEIPT",
      text: "no offset for this partition",
    });
  } catch (error) {
    return outcomes(topic, batches, offsetsIn(error), faultOf(error), answersIn(error));
  }
}

const ALL_REPLICAS = -1;

/** The package requires bytes. */
function bytesOf(headers: Readonly<Record<string, string>>): Map<Buffer, Buffer> {
  return new Map(Object.entries(headers).map(([name, value]) => [Buffer.from(name), Buffer.from(value)]));
}

function outcomes(
  topic: string,
  batches: readonly PartitionBatch[],
  offsets: readonly Stored[],
  otherwise: Fault,
  answers: ReadonlyMap<number, BatchOutcome> = new Map(),
): BatchOutcome[] {
  const stored = new Map(
    offsets.filter((each) => each.topic === topic).map(({ partition, offset }) => [partition, offset]),
  );
  return batches.map(({ partition }) => {
    const baseOffset = stored.get(partition);
    return baseOffset === undefined ? (answers.get(partition) ?? { fault: otherwise }) : { baseOffset };
  });
}

function offsetsIn(error: unknown): readonly Stored[] {
  const { produced } = error as { readonly produced?: { readonly offsets?: readonly Stored[] } };
  return produced?.offsets ?? [];
}

interface ProduceAnswer {
  readonly responses: readonly { readonly partitionResponses: readonly PartitionAnswer[] }[];
}

interface PartitionAnswer {
  readonly index: number;
  readonly errorCode: number;
  readonly baseOffset: bigint;
  readonly errorMessage?: string | null;
}

function answersIn(error: unknown): ReadonlyMap<number, BatchOutcome> {
  const { produced, errors } = error as ErrorLike & { readonly produced?: unknown };
  const leaders: readonly unknown[] = produced !== undefined && Array.isArray(errors) ? errors : [error];
  return new Map(leaders.flatMap((each) => [...answersOf(each)]));
}

/**
 * The answer of one leader. A producer passed in may have tried several times: a receipt counts
 * whatever comes after it, and a refusal is final only if no earlier try may have stored the batch.
 */
function answersOf(error: unknown): ReadonlyMap<number, BatchOutcome> {
  const answers = new Map<number, BatchOutcome>();
  const isLost = faultOf(error).kind === "lost";
  const names = new Map<number, ErrorLike>();
  for (const leaf of leavesOf(error)) if (typeof leaf.apiCode === "number") names.set(leaf.apiCode, leaf);
  const collect = (each: ErrorLike): undefined => {
    const { response } = each as { readonly response?: Partial<ProduceAnswer> };
    for (const { partitionResponses } of response?.responses ?? []) {
      for (const answer of partitionResponses) {
        const outcome = outcomeOf(answer, names.get(answer.errorCode));
        const known = answers.get(answer.index);
        if (isLost && weightOf(outcome) < STORED) continue;
        if (known === undefined || weightOf(outcome) >= weightOf(known)) answers.set(answer.index, outcome);
      }
    }
    return undefined;
  };
  findError(error, collect);
  return answers;
}

const STORED = 2;

/** {@link STORED}, 1 when it may be stored, 0 when it is not. */
function weightOf(outcome: BatchOutcome): number {
  if ("baseOffset" in outcome) return STORED;
  return failureOfSend(outcome.fault).scope === "unknown" ? 1 : 0;
}

function outcomeOf(
  { errorCode, baseOffset, errorMessage }: PartitionAnswer,
  leaf: ErrorLike | undefined,
): BatchOutcome {
  if (errorCode === 0) return { baseOffset };
  const name = textOr(leaf?.apiId, nameOfCode(errorCode));
  const text = errorMessage ?? textOr(leaf?.message, name);
  return { fault: { kind: "answer", code: errorCode, name, text } };
}

function textOr(text: unknown, otherwise: string): string {
  return typeof text === "string" ? text : otherwise;
}

export function faultOf(error: unknown): Fault {
  const faults = leavesOf(error).map(faultOfLeaf);
  // One of several tries may have got through.
  return (
    faults.find(({ kind }) => kind === "lost") ?? faults[0] ?? { kind: "lost", code: "UNKNOWN", text: wordsOf(error) }
  );
}

function leavesOf(error: unknown): ErrorLike[] {
  if (typeof error !== "object" || error === null) return [];
  const { errors } = error as ErrorLike;
  return Array.isArray(errors) && errors.length > 0 ? (errors as unknown[]).flatMap(leavesOf) : [error];
}

/** The package's texts for a missing connection. Requests are only written once connected. */
const CONNECTING = /^Connection to .* (failed|timed out)|ready|Broker requires TLS|(Client|pool) is closed/;

function faultOfLeaf(leaf: ErrorLike): Fault {
  const text = wordsOf(leaf);
  const answer = findError(leaf, ({ apiCode, apiId, message }): Fault | undefined =>
    typeof apiCode === "number"
      ? { kind: "answer", code: apiCode, name: String(apiId), text: String(message) }
      : undefined,
  );
  if (answer !== undefined) return answer;
  if (/^Unknown topic /.test(text)) {
    return { kind: "answer", code: UNKNOWN_TOPIC, name: "UNKNOWN_TOPIC_OR_PARTITION", text };
  }
  if (/broker is not available in the current cluster metadata/.test(text)) {
    return { kind: "answer", code: LEADER_NOT_AVAILABLE, name: "LEADER_NOT_AVAILABLE", text };
  }
  const system = systemCode(leaf);
  const reason = system === undefined ? text : `${text} ${system.text}`;
  if (CONNECTING.test(text)) return { kind: "unreachable", code: system?.code ?? connectCode(text), text: reason };
  if (findError(leaf, ({ code }) => (code === "PLT_KFK_AUTHENTICATION" ? true : undefined)) === true) {
    return { kind: "denied", text: reason };
  }
  return {
    kind: "lost",
    code: system?.code ?? (/timed out/.test(text) ? "REQUEST_TIMEOUT" : "CONNECTION_CLOSED"),
    text: reason,
  };
}

function connectCode(text: string): string {
  return /timed out/.test(text) ? "CONNECT_TIMEOUT" : "CONNECTION";
}
