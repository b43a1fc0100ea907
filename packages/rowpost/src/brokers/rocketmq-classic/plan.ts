/**
 * From the messages of one topic to requests. The producer chooses the queue, so a request may hold
 * messages with ordering keys as well: those of one queue. It is stored whole or not at all.
 *
 * - With an ordering key: the queue of the key's hash, one lane for each queue. Requests of one
 *   queue side by side could be stored in any order, as a broker has several threads.
 * - Without one: a lane of its own for each request, and any queue.
 */
import type { OutgoingMessage } from "../broker.ts";
import type { PlacedMessage } from "../publishing/lanes.ts";
import { packedRequests } from "../publishing/packed-requests.ts";
import type { Placed } from "../publishing/results.ts";
import { groupOf, indexKeyOf, messageIdOf, propertiesOf, tagOf } from "../rocketmq/carry.ts";
import { type Failure, messageFailure } from "../rocketmq/rules.ts";
import { messageBytes, propertiesText } from "./encode.ts";
import { type Queue, queueOf } from "./topic-route.ts";

export interface Item extends Placed {
  readonly text: string;
  readonly body: Buffer;
  readonly bytes: number;
  /** Required queue; undefined: any. */
  readonly queue: Queue | undefined;
}

/** Requests of one lane go one after the other, lanes in parallel. */
export type Lane = readonly (readonly Item[])[];

export interface Plan {
  readonly lanes: readonly Lane[];
  readonly refused: readonly { readonly placed: Placed; readonly failure: Failure }[];
}

export interface PlanOptions {
  readonly queues: readonly Queue[];
  readonly batchSize: number;
  readonly maxBodyBytes: number;
}

/** The server refuses about 4 MB; above 512 KB a larger request gains nothing. */
const MAX_REQUEST_BYTES = 1_048_576;
/** RocketMQ accepts 32,767 bytes, including what the broker adds. */
const MAX_PROPERTY_BYTES = 32_000;

export function planTopic(messages: readonly PlacedMessage[], options: PlanOptions): Plan {
  const free: Item[] = [];
  const byQueue = new Map<Queue, Item[]>();
  const refused: { placed: Placed; failure: Failure }[] = [];
  for (const { index, orderingKey, message } of messages) {
    const wire = wireOf(message, options);
    if ("scope" in wire) {
      refused.push({ placed: { index, orderingKey }, failure: wire });
      continue;
    }
    const queue = orderingKey === undefined ? undefined : queueOf(orderingKey, options.queues);
    const item: Item = { index, orderingKey, queue, ...wire };
    const sameQueue = queue === undefined ? free : byQueue.get(queue);
    if (sameQueue !== undefined) sameQueue.push(item);
    else if (queue !== undefined) byQueue.set(queue, [item]);
  }
  const most = { items: options.batchSize, bytes: MAX_REQUEST_BYTES };
  const lanes = [...byQueue.values()].map((items) => packedRequests(items, most));
  return { lanes: [...lanes, ...packedRequests(free, most).map((request) => [request])], refused };
}

function wireOf(
  message: OutgoingMessage,
  { maxBodyBytes }: PlanOptions,
): Pick<Item, "text" | "body" | "bytes"> | Failure {
  const body = bufferOf(message.body);
  if (body.length > maxBodyBytes) {
    const reason = `the body has ${body.length} bytes; at most ${maxBodyBytes} are allowed (maxBodyBytes, and maxMessageSize of the brokers)`;
    return messageFailure("MESSAGE_BODY_TOO_LARGE", reason);
  }
  if (body.length === 0) return messageFailure("MESSAGE_BODY_EMPTY", "RocketMQ takes no empty body");
  const headers = propertiesOf(message);
  if ("scope" in headers) return headers;
  for (let index = 0; index < headers.length; index += 2) {
    const illegal = illegalName(headers[index] ?? "");
    if (illegal !== undefined) return messageFailure("ILLEGAL_MESSAGE_PROPERTY_KEY", illegal);
  }
  const text = propertiesText([...headers, ...systemProperties(message)]);
  const propertyBytes = Buffer.byteLength(text);
  if (propertyBytes > MAX_PROPERTY_BYTES) {
    const reason = `headers, type and key have ${propertyBytes} bytes as properties; at most ${MAX_PROPERTY_BYTES} are allowed: fewer or shorter headers`;
    return messageFailure("MESSAGE_PROPERTIES_TOO_LARGE", reason);
  }
  return { text, body, bytes: messageBytes(text, body) };
}

function bufferOf(body: string | Uint8Array): Buffer {
  return typeof body === "string" ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

/** Under the names that consumers of either protocol look for. */
function systemProperties({ type, key, orderingKey }: OutgoingMessage): string[] {
  const properties = ["UNIQ_KEY", messageIdOf(type, key)];
  const tag = tagOf(type);
  const indexed = indexKeyOf(key);
  if (tag !== "") properties.push("TAGS", tag);
  if (indexed !== "") properties.push("KEYS", indexed);
  if (orderingKey !== undefined) properties.push("__SHARDINGKEY", groupOf(orderingKey));
  return properties;
}

function illegalName(name: string): string | undefined {
  if (/\p{Cc}/u.test(name)) return "a header's name has a control character, which parts RocketMQ's properties";
  if (!RESERVED.has(name) && !name.startsWith("__RMQ.")) return undefined;
  return `the header ${name} has a name that RocketMQ uses itself; rename or leave out that header`;
}

/** Of 4.9 and 5: some delay a message, some make it wait for a commit for ever. */
const RESERVED: ReadonlySet<string> = new Set(
  `KEYS TAGS WAIT DELAY RETRY_TOPIC REAL_TOPIC REAL_QID TRAN_MSG PGROUP MIN_OFFSET MAX_OFFSET BUYER_ID
  ORIGIN_MESSAGE_ID TRANSFER_FLAG CORRECTION_FLAG RECONSUME_TIME MSG_REGION TRACE_ON UNIQ_KEY EXTEND_UNIQ_INFO
  MAX_RECONSUME_TIMES CONSUME_START_TIME INNER_NUM INNER_BASE DUP_INFO CHECK_IMMUNITY_TIME_IN_SECONDS
  TRAN_PREPARED_QUEUE_OFFSET __transactionId__ TRANSACTION_CHECK_TIMES INSTANCE_ID CORRELATION_ID REPLY_TO_CLIENT
  TTL ARRIVE_TIME PUSH_REPLY_TIME CLUSTER MSG_TYPE POP_CK POP_CK_OFFSET 1ST_POP_TIME __SHARDINGKEY
  PROPERTY_FORWARD_QUEUE_ID REDIRECT INNER_MULTI_DISPATCH INNER_MULTI_QUEUE_OFFSET TRACE_CONTEXT TIMER_DELAY_SEC
  TIMER_DELIVER_MS __BORNHOST BORN_TIMESTAMP TIMER_ENQUEUE_MS TIMER_DEQUEUE_MS TIMER_ROLL_TIMES TIMER_OUT_MS
  TIMER_DEL_UNIQKEY TIMER_DELAY_LEVEL TIMER_DELAY_MS DLQ_ORIGIN_TOPIC DLQ_ORIGIN_MESSAGE_ID`.split(/\s+/),
);
