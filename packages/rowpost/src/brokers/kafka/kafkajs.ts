/**
 * The driver on kafkajs, for Node.js 20 and for those who have it already.
 *
 * What it is spared: its own retries (they repeat a request whose outcome is unknown), idempotence
 * (see given-client.ts) and its partitioner; and in a client of ours the encoding of records
 * (kafkajs-direct.ts).
 */

import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { closeQuietly, type Driver, FaultError, type Session, type TopicDescription } from "./driver.ts";
import type { KafkajsClient } from "./given-client.ts";
import { directSender } from "./kafkajs-direct.ts";
import { faultOf } from "./kafkajs-faults.ts";
import { producerSender } from "./kafkajs-producer.ts";
import type { Settings } from "./options.ts";
import { tlsSocketOptions } from "./tls.ts";

/** The package, as far as it is used here. */
export interface KafkajsModule {
  readonly Kafka: new (options: object) => KafkajsClient;
}

interface Admin {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  describeCluster(): Promise<unknown>;
  fetchTopicMetadata(options: { readonly topics: readonly string[] }): Promise<{
    readonly topics: readonly { readonly name: string; readonly partitions: readonly PartitionMetadata[] }[];
  }>;
}

interface PartitionMetadata {
  readonly partitionId: number;
  readonly leader: number;
}

/** The sockets of one session of ours. */
interface Wire {
  /** Resets them all, and those that are opened later. */
  destroy(): void;
}

/** A driver with the user's client, or with one of its own for each session. */
export function kafkajsDriver(module: KafkajsModule | undefined, settings: Settings): Driver {
  const given = settings.given?.kind === "kafkajs" ? settings.given.client : undefined;
  return {
    endsAttempts: given === undefined,
    async open(signal) {
      const own = given === undefined && module !== undefined ? ownClient(module, settings) : undefined;
      const client = given ?? own?.client;
      if (client === undefined) throw new TypeError("neither the package nor a client of kafkajs");
      return await openSession(client, own?.wire, settings, signal);
    },
  };
}

function ownClient(module: KafkajsModule, settings: Settings): { readonly client: KafkajsClient; readonly wire: Wire } {
  const sockets = new Set<Socket>();
  let ended = false;
  const socketFactory = ({ host, port, onConnect }: SocketRequest): Socket => {
    const socket =
      settings.tls === undefined
        ? connectTcp({ host, port }, onConnect)
        : connectTls({ host, port, ...tlsSocketOptions(settings.tls, host) }, onConnect);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    sockets.add(socket);
    // It may connect again, or for the first time, after it was told to end. Later, because it has
    // no listener for the error yet.
    if (ended) setImmediate(() => socket.destroy(new Error(ENDED)));
    socket.once("close", () => sockets.delete(socket));
    return socket;
  };
  const client = new module.Kafka({
    brokers: settings.brokers,
    clientId: settings.clientId,
    // kafkajs demands an object here for TLS; the sockets are ours.
    ssl: settings.tls === undefined ? undefined : {},
    sasl: settings.sasl,
    connectionTimeout: settings.connectTimeoutMs,
    authenticationTimeout: settings.connectTimeoutMs,
    requestTimeout: settings.requestTimeoutMs,
    // Of connecting: the next address when one does not answer.
    retry: { retries: settings.brokers.length - 1, initialRetryTime: 10, maxRetryTime: 100 },
    logLevel: 0,
    socketFactory,
  });
  const wire: Wire = {
    destroy() {
      ended = true;
      for (const socket of sockets) socket.destroy(new Error(ENDED));
    },
  };
  return { client, wire };
}

interface SocketRequest {
  readonly host: string;
  readonly port: number;
  readonly onConnect: () => void;
}

const ENDED = "closed by rowpost";
const KEEP_ALIVE_MS = 60_000;

async function openSession(
  client: KafkajsClient,
  wire: Wire | undefined,
  settings: Settings,
  signal: AbortSignal,
): Promise<Session> {
  const retry = { retries: 0 };
  const admin = client.admin({ retry }) as Admin;
  const describe = async (topic: string): Promise<TopicDescription> => {
    const { topics } = await asking(admin.fetchTopicMetadata({ topics: [topic] }));
    return descriptionOf(topics.find(({ name }) => name === topic)?.partitions ?? []);
  };
  // A client of the user's may be wrapped, by tracing for example: its producer is used as
  // everybody does.
  const direct = wire === undefined ? undefined : directSender(client, { settings, describe });
  const sender = direct ?? producerSender(client, settings);
  const end = async (): Promise<void> => {
    await closeQuietly(Promise.allSettled([sender.disconnect(), admin.disconnect()]));
    wire?.destroy();
  };
  const giveUp = (): void => wire?.destroy();
  signal.addEventListener("abort", giveUp);
  if (signal.aborted) giveUp();
  const connecting = [sender.connect(), admin.connect()];
  try {
    await Promise.all(connecting);
  } catch (cause) {
    // A client of the user's goes on trying by its own settings: the attempt is over when both are.
    if (wire === undefined) await Promise.allSettled(connecting);
    await end();
    throw new FaultError(faultOf(cause, true), { cause });
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
  return {
    combines: sender.combines,
    async check() {
      await asking(admin.describeCluster());
    },
    describe: direct?.describe ?? describe,
    send: sender.send,
    close: end,
  };
}

function descriptionOf(partitions: readonly PartitionMetadata[]): TopicDescription {
  const leaders: number[] = new Array<number>(partitions.length).fill(-1);
  for (const { partitionId, leader } of partitions) leaders[partitionId] = leader;
  return { leaders };
}

async function asking<Answer>(question: Promise<Answer>): Promise<Answer> {
  try {
    return await question;
  } catch (cause) {
    throw new FaultError(faultOf(cause, true), { cause });
  }
}
