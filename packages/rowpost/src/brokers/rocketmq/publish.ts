import { hostname } from "node:os";
import type { OutgoingMessage, PublishResult } from "../broker.ts";
import { type AbortScope, orAborted } from "../publishing/abort-scope.ts";
import { byTopic } from "../publishing/by-topic.ts";
import { type Call, createCall, type Load } from "../publishing/call.ts";
import { type PlacedMessage, startRequests } from "../publishing/lanes.ts";
import type { Window } from "../publishing/window.ts";
import type { Connection } from "./connection.ts";
import { failureOfCall, failureOfStatus, type RocketmqStatus } from "./failures.ts";
import type { GrpcRuntime } from "./grpc.ts";
import type { Settings } from "./options.ts";
import { type Item, planTopic } from "./plan.ts";
import type { Routes } from "./routes.ts";
import type { Failure } from "./rules.ts";
import type { Session } from "./session.ts";
import { encodeSendRequest } from "./wire.ts";

export interface Publishing {
  readonly settings: Settings;
  readonly runtime: GrpcRuntime;
  readonly connection: Connection;
  readonly session: Session;
  readonly routes: Routes;
  readonly window: Window;
  readonly onUnordered: (topic: string, accepts: ReadonlySet<string>) => void;
}

/** The server refuses about 4 MB; above 512 KB a larger request gains nothing. */
const MAX_REQUEST_BYTES = 1_048_576;

export async function publishBatch(
  publishing: Publishing,
  batch: readonly OutgoingMessage[],
  scope: AbortScope,
): Promise<PublishResult[]> {
  const call = createCall<Item>({
    count: batch.length,
    scope,
    window: publishing.window,
    // No `leave`: only the end of a request shows whether it was written.
    carrier: (own) => ({
      hand(load) {
        own.settleBy(load, send(publishing, load, scope));
        return undefined;
      },
    }),
  });
  await Promise.all(
    [...byTopic(batch)].map(([topic, messages]) => startTopic(publishing, call, topic, messages, scope)),
  );
  return await call.done;
}

async function startTopic(
  publishing: Publishing,
  call: Call<Item>,
  topic: string,
  messages: readonly PlacedMessage[],
  scope: AbortScope,
): Promise<void> {
  const found = publishing.routes.find(topic);
  const answer = found instanceof Promise ? await orAborted(found, scope) : found;
  if (answer === undefined) return;
  const { route } = answer;
  if (route === undefined) {
    const { failure } = answer;
    if (failure.scope === "connection") {
      publishing.routes.expireAll();
      call.breakOff(failure);
    }
    for (const placed of messages) call.refuse(placed, topic, failure);
    return;
  }
  const { batchSize, unorderedTopic } = publishing.settings;
  const maxBodyBytes = publishing.session.maxBodyBytes();
  const plan = planTopic(messages, {
    topic,
    accepts: route.accepts,
    batchSize,
    maxRequestBytes: Math.min(MAX_REQUEST_BYTES, maxBodyBytes ?? MAX_REQUEST_BYTES),
    maxBodyBytes,
    refuseUnordered: unorderedTopic === "fail",
  });
  if (plan.unordered > 0) publishing.onUnordered(topic, route.accepts);
  for (const { placed, failure } of plan.refused) call.refuse(placed, topic, failure);
  for (const lane of plan.lanes) startRequests(call, topic, lane);
}

async function send(
  publishing: Publishing,
  { destination: topic, items }: Load<Item>,
  scope: AbortScope,
): Promise<readonly string[] | Failure> {
  const { connection, runtime, settings } = publishing;
  const { namespace, requestTimeoutMs: timeoutMs } = settings;
  const request = encodeSendRequest(
    { namespace, topic, bornHost: BORN_HOST, bornAtMs: Date.now() },
    items.map(({ wire }) => wire),
  );
  const result = await connection.call(runtime.methods.SendMessage, request, { timeoutMs, scope, serialize: asItIs });
  const failure = result.ok ? failureOfAnswer(result.response as SendAnswer) : failureOfCall(result);
  return failure === undefined ? items.map(({ wire }) => wire.messageId) : concluded(publishing, topic, failure);
}

const BORN_HOST = hostname();
const asItIs = (request: unknown): Buffer => request as Buffer;

function concluded({ routes }: Publishing, topic: string, failure: Failure): Failure {
  if (failure.scope === "connection") routes.expireAll();
  return failure.routeIsWrong ? routes.contradicted(topic, failure) : failure;
}

interface SendAnswer {
  readonly status?: RocketmqStatus;
  readonly entries?: readonly { readonly status?: RocketmqStatus }[];
}

function failureOfAnswer({ status, entries }: SendAnswer): Failure | undefined {
  const failure = failureOfStatus(status);
  if (failure !== undefined) return failure;
  // Currently one entry stands for a whole batch. Every entry must be good.
  for (const entry of entries ?? []) {
    const refused = entry.status === undefined ? undefined : failureOfStatus(entry.status);
    if (refused !== undefined) return refused;
  }
  return undefined;
}
