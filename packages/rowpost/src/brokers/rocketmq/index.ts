/**
 * RocketMQ 5 through its gRPC proxy: an own, thin producer on `@grpc/grpc-js`.
 *
 * Why not the official Node.js client: its `startup` waits without limit, `shutdown` rejects while
 * the broker is down, endpoints that failed once are never used again, permanent errors are tried
 * three times, and it has no batches, which are ten times as fast. See `docs/brokers/rocketmq.md`
 * for what goes where in a RocketMQ message.
 */

import { BrokerError } from "../../runtime/errors.ts";
import type { Broker } from "../broker.ts";
import { unusableFailure } from "../publishing/failures.ts";
import { createBroker } from "../publishing/lifecycle.ts";
import { failBatch } from "../publishing/results.ts";
import { inTurns, topicOf } from "../publishing/turns.ts";
import { createWindow } from "../publishing/window.ts";
import { targetOf } from "../settings/server-address.ts";
import type { CallResult } from "./connection.ts";
import { failureOfCall, failureOfStatus, type RocketmqStatus } from "./failures.ts";
import { type GrpcRuntime, loadGrpc } from "./grpc.ts";
import { type RocketmqOptions, type Settings, settingsFrom } from "./options.ts";
import { type Publishing, publishBatch } from "./publish.ts";
import { createRoutes, type RouteAnswer } from "./routes.ts";
import type { Failure } from "./rules.ts";
import { askForRoute, openClient, PRODUCER, UNKNOWN_CLIENT } from "./session.ts";
import { rocketmqOptionsFromUrl } from "./url.ts";

export type { TlsOptions as RocketmqTlsOptions } from "../settings/tls-options.ts";
export { headersOf as decodeRocketmqHeaders } from "./carry.ts";
export type { RocketmqOptions } from "./options.ts";
export { rocketmqOptionsFromUrl } from "./url.ts";

const DEFAULT_MAX_BODY_BYTES = 4_194_304;

/**
 * A broker that publishes to RocketMQ 5. Connects at the first `publish` or `check`. Throws
 * `ConfigurationError` for invalid options. The receipt (`message_id`) is an id made from type and
 * key, the same for every attempt.
 */
export function rocketmq(options: RocketmqOptions): Broker {
  const settings = settingsFrom(options);
  let opening: Promise<Publishing> | undefined;
  let opened: Publishing | undefined;

  const open = (): Promise<Publishing> => {
    opening ??= loadGrpc().then(
      (runtime) => {
        opened = openWith(runtime, settings);
        return opened;
      },
      (error: unknown) => {
        opening = undefined;
        throw error;
      },
    );
    return opening;
  };

  return createBroker({
    name: "rocketmq",
    title: "RocketMQ",
    target: targetOf(settings.endpoints, `/${settings.namespace}`),
    features: () => ({
      ordering: "key",
      reportsUnknownTopic: true,
      maxBodyBytes: opened?.session.maxBodyBytes() ?? DEFAULT_MAX_BODY_BYTES,
    }),
    async publish(batch, scope) {
      let parts: Publishing;
      try {
        parts = opened ?? (await open());
      } catch (error) {
        return failBatch(batch, unusableFailure(error));
      }
      parts.session.touch();
      return await inTurns(batch, scope, topicOf, (messages) => publishBatch(parts, messages, scope));
    },
    async check() {
      await checkWith(await open(), settings);
    },
    async close() {
      const parts = await opening?.catch(() => undefined);
      if (parts === undefined) return;
      await parts.session.close();
      parts.connection.close();
    },
  });
}

/** The broker of `rocketmq://host1,host2/namespace`; see {@link rocketmqOptionsFromUrl}. */
export function rocketmqFromUrl(url: string, env: Readonly<Record<string, string | undefined>> = process.env): Broker {
  return rocketmq(rocketmqOptionsFromUrl(url, env));
}

function openWith(runtime: GrpcRuntime, settings: Settings): Publishing {
  const client = openClient(runtime, settings, { topics: () => routes.topics() });
  const routes = createRoutes({
    query: async (topic) => routeOf(await askForRoute({ runtime, ...client }, settings, topic)),
    now: () => performance.now(),
  });
  const window = createWindow({ loads: settings.maxInFlight });
  return { settings, runtime, ...client, routes, window, onUnordered: createWarner(settings) };
}

function createWarner({ unorderedTopic, onWarning }: Settings): Publishing["onUnordered"] {
  const warned = new Set<string>();
  return (topic, accepts) => {
    if (unorderedTopic !== "warn" || warned.has(topic) || warned.size >= MAX_WARNED) return;
    warned.add(topic);
    onWarning(
      `RocketMQ topic ${topic} takes ${[...accepts].join(", ")} messages and keeps no order: messages with an ordering key are published in their order, ` +
        'but consumers may see them in another. Create the topic with message.type=FIFO, or set unorderedTopic: "publish" where that is fine.',
    );
  };
}

const MAX_WARNED = 1000;

function routeOf(result: CallResult): RouteAnswer {
  const failure = routeFailure(result);
  if (failure !== undefined) return { failure };
  const answer = (result as { response: RouteResponse }).response;
  const accepts = new Set<string>();
  for (const queue of answer.messageQueues ?? []) for (const type of queue.acceptMessageTypes ?? []) accepts.add(type);
  return { route: { accepts } };
}

interface RouteResponse {
  readonly status?: RocketmqStatus;
  readonly messageQueues?: readonly { readonly acceptMessageTypes?: readonly string[] }[];
}

/** A failed route query: no message was handed over. */
function routeFailure(result: CallResult): Failure | undefined {
  if (!result.ok) {
    const failure = failureOfCall(result);
    return failure.scope === "unknown" ? { ...failure, scope: "connection" } : failure;
  }
  const failure = failureOfStatus((result.response as RouteResponse).status);
  if (failure?.code === "INTERNAL_SERVER_ERROR" || failure?.scope === "unknown")
    return { ...failure, scope: "destination" };
  return failure;
}

/** A signed heartbeat without a topic; without a session it is answered "unknown client". */
async function checkWith({ runtime, connection }: Publishing, settings: Settings): Promise<void> {
  const result = await connection.call(runtime.methods.Heartbeat, PRODUCER, {
    timeoutMs: settings.requestTimeoutMs,
  });
  const status = result.ok ? (result.response as { status?: RocketmqStatus }).status : undefined;
  if (status?.code === UNKNOWN_CLIENT) return;
  const failure = result.ok ? failureOfStatus(status) : failureOfCall(result);
  if (failure === undefined) return;
  const where = settings.endpoints.map(({ host, port }) => `${host}:${port}`).join(", ");
  const advice = result.ok || failure.code === "CONNECT_TIMEOUT" ? "" : `. ${adviceFor(settings)}`;
  throw new BrokerError(
    failure.code,
    `RocketMQ at ${where} cannot be used: ${failure.code}: ${failure.reason}${advice}`,
    { retriable: failure.scope !== "message" && failure.code !== "UNAUTHORIZED" },
  );
}

function adviceFor({ tls }: Settings): string {
  const port =
    "Is the proxy running, and is this its gRPC port (8081 by default; not 9876, the name server, nor 10911, the broker)?";
  return tls === undefined
    ? `${port} A proxy that takes TLS only needs the tls option.`
    : `${port} Does it speak TLS, with a certificate that tls.ca trusts?`;
}
