/** The kafkajs driver. It uses only the connections of kafkajs (`kafkajs-cluster.ts`). */

import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { onAbort } from "../../runtime/abort.ts";
import { closeQuietly } from "../../runtime/deadline.ts";
import { nodeTls } from "../settings/tls-options.ts";
import { type Driver, FaultError, type Session } from "./driver.ts";
import type { KafkajsClient } from "./given-client.ts";
import { ask, clusterOf, createProduce, describeTopic } from "./kafkajs-cluster.ts";
import { faultOf } from "./kafkajs-faults.ts";
import type { Settings } from "./options.ts";

export interface KafkajsModule {
  readonly Kafka: new (options: object) => KafkajsClient;
}

interface Wire {
  /** Resets all sockets, including those opened later. */
  destroy(): void;
}

/** A driver with the client passed in, or with its own client for each session. */
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
        : connectTls(
            { host, port, ...(isIP(host) === 0 && { servername: host }), ...nodeTls(settings.tls) },
            onConnect,
          );
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    sockets.add(socket);
    // It may reconnect after it was told to end. Deferred, because the socket has no error listener
    // yet.
    if (ended) setImmediate(() => socket.destroy(new Error(ENDED)));
    socket.once("close", () => sockets.delete(socket));
    return socket;
  };
  const client = new module.Kafka({
    brokers: settings.brokers,
    clientId: settings.clientId,
    // kafkajs requires an object here for TLS; the sockets are made above.
    ssl: settings.tls === undefined ? undefined : {},
    sasl: settings.sasl,
    connectionTimeout: settings.connectTimeoutMs,
    authenticationTimeout: settings.connectTimeoutMs,
    requestTimeout: settings.requestTimeoutMs,
    // For connecting only: tries the next address when one does not answer.
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
  { requestTimeoutMs }: Settings,
  signal: AbortSignal,
): Promise<Session> {
  const cluster = clusterOf(client);
  const close = async (): Promise<void> => {
    await closeQuietly(cluster.disconnect());
    wire?.destroy();
  };
  const stopFollowing = onAbort(signal, () => wire?.destroy());
  try {
    await cluster.connect();
  } catch (cause) {
    await close();
    throw new FaultError(faultOf(cause, true), { cause });
  } finally {
    stopFollowing();
  }
  return {
    async check() {
      await ask(cluster, []);
    },
    describe: (topic) => describeTopic(cluster, topic),
    send: createProduce(cluster, requestTimeoutMs),
    close,
  };
}
