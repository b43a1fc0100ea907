/**
 * A real consumer on RocketMQ's classic protocol: reads each queue from where it ends when the run
 * begins, and handles the orders.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { fromRocketmq, type RocketmqMessage } from "rowpost/inbox";
import { rocketmqClassicFromUrl, rocketmqClassicOptionsFromUrl } from "rowpost/rocketmq-classic";
import { brokerLabel } from "../broker-url.ts";
import { CommandFailure } from "../failure.ts";
import type { StartConsumer } from "./consumer.ts";
import { type ClassicConnection, connectClassic } from "./rocketmq-classic-client.ts";

const TOPIC = "rowpost_demo_orders_classic";
const QUEUES = 4;
const BATCH = 64;
const WAIT_MS = 1_000;
/** The name server tells of a new topic once its broker has registered it. */
const LEARN_MS = 30_000;

const PULL_MESSAGE = 11;
const MAKE_TOPIC = 17;
const MAX_OFFSET = 30;
const ROUTE = 105;
const CLUSTER = 106;
const FOUND = 0;
/** The request waits for messages, and brings its own subscription. */
const SUSPENDED_SUBSCRIPTION = 6;

/** A queue, and where this run goes on in it. */
interface Queue {
  readonly address: string;
  readonly id: number;
  offset: number;
}

interface StoredMessage extends RocketmqMessage {
  readonly offset: number;
}

/** Makes the topic where it is missing, and begins to read. */
export const startRocketmqClassicConsumer: StartConsumer = async (url, parts) => {
  const { atEnd, environment, orders, onTrouble, say } = parts;
  const options = rocketmqClassicOptionsFromUrl(url, environment);
  const topic = options.namespace === undefined ? TOPIC : `${options.namespace}%${TOPIC}`;
  const broker = rocketmqClassicFromUrl(url, environment);
  atEnd(() => broker.close());
  await broker.check();
  const connections = new Map<string, ClassicConnection>();
  let closed = false;

  const to = (address: string): ClassicConnection => {
    const connection = connections.get(address) ?? connectClassic(address, options);
    connections.set(address, connection);
    return connection;
  };

  async function read(queue: Queue): Promise<void> {
    while (!closed) {
      try {
        const messages = await pull(to(queue.address), topic, queue);
        await Promise.all(messages.map((message) => orders.receive(() => fromRocketmq(message))));
        queue.offset = (messages.at(-1)?.offset ?? queue.offset - 1) + 1;
      } catch (error) {
        if (closed) return;
        onTrouble(`consumer: ${error instanceof Error ? error.message : String(error)}`);
        connections.delete(queue.address);
        await sleep(200);
      }
    }
  }

  let reading: readonly Promise<void>[] = [];
  atEnd(async () => {
    closed = true;
    for (const connection of connections.values()) connection.close();
    await Promise.all(reading);
  });
  reading = (await prepare({ topic, to, nameServer: firstOf(options.nameServers), say })).map(read);
  return { broker, topic: TOPIC, label: `${brokerLabel(url)} topic ${topic}` };
};

function firstOf(nameServers: string | readonly string[]): string {
  const [first = ""] = [nameServers].flat().flatMap((text) => text.split(/[,;]/));
  return /:\d+$/.test(first) ? first.trim() : `${first.trim()}:9876`;
}

interface Place {
  readonly topic: string;
  readonly nameServer: string;
  readonly to: (address: string) => ClassicConnection;
  readonly say: (text: string) => void;
}

/** The queues of the topic, each with its end; made where there are none. */
async function prepare({ topic, nameServer, to, say }: Place): Promise<readonly Queue[]> {
  const find = async (): Promise<readonly string[]> => {
    const { code, body } = await to(nameServer).ask(ROUTE, { topic, acceptStandardJsonOnly: "true" });
    return code === 0 ? primariesIn(body) : [];
  };
  let addresses = await find();
  if (addresses.length === 0) {
    say(`making the topic ${topic} …`);
    const [address] = primariesIn((await to(nameServer).ask(CLUSTER, {})).body);
    if (address === undefined) throw new CommandFailure(`RocketMQ at ${nameServer} knows no primary broker`);
    await makeTopic(to(address), topic);
    const endsAt = performance.now() + LEARN_MS;
    while (addresses.length === 0) {
      if (performance.now() > endsAt) throw new CommandFailure(`RocketMQ does not show the topic ${topic} just made`);
      await sleep(100);
      addresses = await find();
    }
  }
  const queues = addresses.flatMap((address) => Array.from({ length: QUEUES }, (_, id) => ({ address, id })));
  return await Promise.all(
    queues.map(async ({ address, id }) => {
      const { fields } = await to(address).ask(MAX_OFFSET, { topic, queueId: String(id) });
      return { address, id, offset: Number(fields["offset"] ?? 0) };
    }),
  );
}

/** Brokers stand in it with their addresses by their ids, of which the primary's is 0. */
function primariesIn(body: Buffer): string[] {
  return [...body.toString().matchAll(/"?\b0"?\s*:\s*"([^"]+:\d+)"/g)].flatMap(([, address]) => address ?? []);
}

async function makeTopic(broker: ClassicConnection, topic: string): Promise<void> {
  const { code, remark } = await broker.ask(MAKE_TOPIC, {
    ...{ topic, defaultTopic: "TBW102", readQueueNums: String(QUEUES), writeQueueNums: String(QUEUES), perm: "6" },
    ...{ topicFilterType: "SINGLE_TAG", topicSysFlag: "0", order: "false" },
  });
  if (code !== 0) throw new CommandFailure(`RocketMQ does not make the topic ${topic}: ${code} ${remark}`);
}

/** Messages from the queue's offset on. */
async function pull(broker: ClassicConnection, topic: string, queue: Queue): Promise<readonly StoredMessage[]> {
  const { code, body } = await broker.ask(PULL_MESSAGE, {
    ...{ consumerGroup: "rowpost_demo", topic, queueId: String(queue.id), queueOffset: String(queue.offset) },
    ...{ maxMsgNums: String(BATCH), sysFlag: String(SUSPENDED_SUBSCRIPTION), suspendTimeoutMillis: String(WAIT_MS) },
    ...{ commitOffset: "0", subscription: "*", subVersion: "0", expressionType: "TAG" },
  });
  const messages: StoredMessage[] = [];
  for (let at = 0; code === FOUND && at + 4 <= body.length; at += body.readUInt32BE(at)) {
    messages.push(messageIn(topic, body.subarray(at)));
  }
  return messages;
}

/**
 * A stored message: two hosts of 8 or 20 bytes, as its flags say, stand before the body, and its
 * topic between that and the properties.
 */
function messageIn(topic: string, stored: Buffer): StoredMessage {
  const flags = stored.readUInt32BE(36);
  const hosts = ((flags & 16) === 0 ? 8 : 20) + ((flags & 32) === 0 ? 8 : 20);
  const body = 48 + hosts + 20;
  const name = body + 4 + stored.readUInt32BE(body);
  const at = name + 1 + stored.readUInt8(name);
  const text = stored.toString("utf8", at + 2, at + 2 + stored.readUInt16BE(at));
  const properties = text.split("\u0002").flatMap((each): [string, string][] => {
    const [key, value] = each.split("\u0001");
    return key === undefined || value === undefined ? [] : [[key, value]];
  });
  return { topic, offset: Number(stored.readBigUInt64BE(20)), properties };
}
