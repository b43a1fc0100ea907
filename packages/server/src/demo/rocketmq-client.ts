/**
 * The few calls of RocketMQ 5's gRPC protocol that a simple consumer makes: route, session,
 * receive, acknowledge. For the demo only, which must see messages as a consumer does and not as
 * their producer says; programs use an official client.
 */
import { createHmac, randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  Metadata,
  type ServiceDefinition,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import type { RocketmqOptions } from "rowpost/rocketmq";

/** A received message, and the handle that acknowledges it. */
export interface ReceivedMessage {
  readonly messageId: string;
  readonly receiptHandle: string;
  /** Of the producer. */
  readonly properties: Readonly<Record<string, string>>;
}

/** A queue of a topic's route, as it is sent back in a ReceiveMessage call. */
export interface RouteQueue {
  readonly broker?: { readonly name?: string };
  readonly [field: string]: unknown;
}

export interface RocketmqClient {
  /** Queues of the topic; undefined when there is no such topic. */
  route(topic: string): Promise<readonly RouteQueue[] | undefined>;
  /** Introduces this consumer of a group. False: there is no such group. */
  subscribe(group: string, topic: string): Promise<boolean>;
  heartbeat(group: string): Promise<void>;
  /** Waits at most `waitMs` for messages of one broker. */
  receive(request: {
    readonly group: string;
    readonly queue: RouteQueue;
    readonly most: number;
    readonly waitMs: number;
    readonly invisibleMs: number;
  }): Promise<ReceivedMessage[]>;
  acknowledge(group: string, topic: string, messages: readonly ReceivedMessage[]): Promise<void>;
  /** Cancels what is running. */
  close(): void;
}

interface Status {
  readonly code?: string | number;
  readonly message?: string;
}

const CALL_MS = 10_000;

/** Connects to the first endpoint at the first call. */
export function createRocketmqClient(options: RocketmqOptions): RocketmqClient {
  const [endpoint = ""] = [options.endpoints].flat().flatMap((text) => text.split(/[,;]/));
  const target = /:\d+$/.test(endpoint) ? endpoint.trim() : `${endpoint.trim()}:8081`;
  const service = loadService();
  const client = new Client(target, channelCredentials(options));
  const metadata = metadataOf(options);
  const resource = (name: string): object =>
    options.namespace === undefined ? { name } : { resourceNamespace: options.namespace, name };
  const endpoints = endpointsOf(target);
  let session: ClientDuplexStream<unknown, unknown> | undefined;
  const receiving = new Set<ClientReadableStream<unknown>>();

  function call<Answer extends { readonly status?: Status }>(name: string, request: object): Promise<Answer> {
    const method = methodOf(service, name);
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        metadata(),
        { deadline: Date.now() + CALL_MS },
        (error, answer) => (error === null ? resolve(answer as Answer) : reject(error)),
      );
    });
  }

  function openSession(settings: object): Promise<boolean> {
    const method = methodOf(service, "Telemetry");
    const stream = client.makeBidiStreamRequest(
      method.path,
      method.requestSerialize,
      method.responseDeserialize,
      metadata(),
    );
    session = stream;
    return new Promise((resolve, reject) => {
      stream.on("data", () => resolve(true));
      stream.on("error", (error: Error & { readonly code?: number }) => {
        // INVALID_ARGUMENT is how the proxy says that it does not know the group.
        if (error.code === 3 || /group/i.test(error.message)) resolve(false);
        else reject(error);
      });
      stream.on("end", () => resolve(false));
      stream.write({ settings });
    });
  }

  return {
    async route(topic) {
      const request = { topic: resource(topic), endpoints };
      const { status, messageQueues } = await call<{ status?: Status; messageQueues?: RouteQueue[] }>(
        "QueryRoute",
        request,
      );
      if (status?.code === "TOPIC_NOT_FOUND") return undefined;
      assertOk("QueryRoute", status);
      return messageQueues ?? [];
    },
    async subscribe(group, topic) {
      session?.cancel();
      const subscriptions = [{ topic: resource(topic), expression: { type: "TAG", expression: "*" } }];
      return await openSession({
        clientType: "SIMPLE_CONSUMER",
        accessPoint: endpoints,
        requestTimeout: { seconds: CALL_MS / 1_000 },
        subscription: { group: resource(group), subscriptions },
        userAgent: { language: "NODE_JS", version: "5.0.0", platform: process.platform, hostname: "rowpost-demo" },
      });
    },
    async heartbeat(group) {
      const request = { group: resource(group), clientType: "SIMPLE_CONSUMER" };
      assertOk("Heartbeat", (await call("Heartbeat", request)).status);
    },
    receive({ group, queue, most, waitMs, invisibleMs }) {
      const method = methodOf(service, "ReceiveMessage");
      const stream = client.makeServerStreamRequest(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        {
          group: resource(group),
          messageQueue: queue,
          filterExpression: { type: "TAG", expression: "*" },
          batchSize: most,
          invisibleDuration: durationOf(invisibleMs),
          longPollingTimeout: durationOf(waitMs),
          autoRenew: false,
        },
        metadata(),
        { deadline: Date.now() + waitMs + CALL_MS },
      );
      receiving.add(stream);
      return collect(stream).finally(() => receiving.delete(stream));
    },
    async acknowledge(group, topic, messages) {
      const entries = messages.map(({ messageId, receiptHandle }) => ({ messageId, receiptHandle }));
      const { status } = await call("AckMessage", { group: resource(group), topic: resource(topic), entries });
      assertOk("AckMessage", status);
    },
    close() {
      for (const stream of receiving) stream.cancel();
      session?.cancel();
      client.close();
    },
  };
}

/** The messages of one ReceiveMessage answer; a stream of statuses, timestamps and messages. */
function collect(stream: ClientReadableStream<unknown>): Promise<ReceivedMessage[]> {
  const messages: ReceivedMessage[] = [];
  return new Promise((resolve, reject) => {
    stream.on("data", (part: unknown) => {
      const { message, status } = part as { message?: WireMessage; status?: Status };
      if (message !== undefined) messages.push(receivedMessage(message));
      else if (status !== undefined && !isEmpty(status)) reject(statusError("ReceiveMessage", status));
    });
    stream.on("error", reject);
    stream.on("end", () => resolve(messages));
  });
}

interface WireMessage {
  readonly userProperties?: Readonly<Record<string, string>>;
  readonly systemProperties?: { readonly messageId?: string; readonly receiptHandle?: string };
}

function receivedMessage({ systemProperties, userProperties }: WireMessage): ReceivedMessage {
  return {
    messageId: systemProperties?.messageId ?? "",
    receiptHandle: systemProperties?.receiptHandle ?? "",
    properties: userProperties ?? {},
  };
}

/** Nothing came within the long poll: no failure. */
function isEmpty({ code }: Status): boolean {
  return code === "OK" || code === "MESSAGE_NOT_FOUND";
}

function assertOk(name: string, status: Status | undefined): void {
  if (status?.code !== "OK" && status?.code !== "MULTIPLE_RESULTS") throw statusError(name, status ?? {});
}

function statusError(name: string, { code, message }: Status): Error {
  return new Error(`RocketMQ answered ${name} with ${code}: ${message ?? ""}`);
}

/** The protos are files of the package rowpost. */
function loadService(): ServiceDefinition {
  const protos = join(dirname(createRequire(import.meta.url).resolve("rowpost/package.json")), "proto");
  const loaded = loadSync("apache/rocketmq/v2/service.proto", { includeDirs: [protos], enums: String, longs: Number });
  return loaded["apache.rocketmq.v2.MessagingService"] as ServiceDefinition;
}

function methodOf(service: ServiceDefinition, name: string): ServiceDefinition[string] {
  const method = service[name];
  if (method === undefined) throw new Error(`the protos have no method ${name}`);
  return method;
}

function channelCredentials({ tls }: RocketmqOptions): ChannelCredentials {
  if (tls === undefined || tls === false) return credentials.createInsecure();
  if (tls === true) return credentials.createSsl();
  const pem = (text: string | Uint8Array | undefined): Buffer | null => (text === undefined ? null : Buffer.from(text));
  return credentials.createSsl(pem(tls.ca), pem(tls.key), pem(tls.cert), {
    rejectUnauthorized: tls.rejectUnauthorized ?? true,
  });
}

/**
 * Headers of each call: who we are, and the signature of the time where the cluster asks for one.
 */
function metadataOf(options: RocketmqOptions): () => Metadata {
  const clientId = `rowpost-demo@${process.pid}@${randomUUID()}`;
  return () => {
    const metadata = new Metadata();
    const time = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
    const fields: Record<string, string> = {
      "x-mq-client-id": clientId,
      "x-mq-protocol": "v2",
      "x-mq-language": "NODE_JS",
      "x-mq-client-version": "5.0.0",
      "x-mq-date-time": time,
    };
    if (options.namespace !== undefined) fields["x-mq-namespace"] = options.namespace;
    if (options.accessKey !== undefined && options.secretKey !== undefined) {
      const signature = createHmac("sha1", options.secretKey).update(time).digest("hex");
      fields["authorization"] =
        `MQv2-HMAC-SHA1 Credential=${options.accessKey}, SignedHeaders=x-mq-date-time, Signature=${signature}`;
    }
    if (options.sessionToken !== undefined) fields["x-mq-session-token"] = options.sessionToken;
    for (const [name, value] of Object.entries(fields)) metadata.set(name, value);
    return metadata;
  };
}

function endpointsOf(target: string): object {
  const colon = target.lastIndexOf(":");
  const host = target.slice(0, colon).replace(/^\[(.*)\]$/, "$1");
  const scheme = host.includes(":") ? "IPv6" : /^[\d.]+$/.test(host) ? "IPv4" : "DOMAIN_NAME";
  return { scheme, addresses: [{ host, port: Number(target.slice(colon + 1)) }] };
}

function durationOf(ms: number): object {
  return { seconds: Math.floor(ms / 1_000), nanos: (ms % 1_000) * 1_000_000 };
}
