/** A real RocketMQ consumer: receives, handles the orders, acknowledges. */
import { setTimeout as sleep } from "node:timers/promises";
import { fromRocketmq } from "rowpost/inbox";
import { rocketmqFromUrl, rocketmqOptionsFromUrl } from "rowpost/rocketmq";
import type { ConsumerParts, DemoConsumer } from "./consumer.ts";
import { createRocketmqClient, type RouteQueue } from "./rocketmq-client.ts";
import { prepareRocketmq } from "./rocketmq-setup.ts";

const TOPIC = "rowpost_demo_orders";
const GROUP = "rowpost_demo";
/** Receive calls side by side for each broker. */
const RECEIVERS = 4;
const HEARTBEAT_MS = 10_000;
const BATCH = 32;
const WAIT_MS = 5_000;
/**
 * RocketMQ allows 10 s and more. What an interrupted run had received and not acknowledged comes
 * back after it, and is of another run.
 */
const INVISIBLE_MS = 10_000;

/** Makes topic and group where they are missing, and begins to receive. */
export async function startRocketmqConsumer(url: string, options: ConsumerParts): Promise<DemoConsumer> {
  const { orders, onTrouble } = options;
  const settings = rocketmqOptionsFromUrl(url, options.environment);
  const [endpoint = ""] = [settings.endpoints].flat().flatMap((text) => text.split(/[,;]/));
  const client = createRocketmqClient(settings);
  const trouble = new Map<string, number>();
  let closed = false;

  async function receiveFrom(queue: RouteQueue): Promise<void> {
    while (!closed) {
      try {
        const messages = await client.receive({
          group: GROUP,
          queue,
          most: BATCH,
          waitMs: WAIT_MS,
          invisibleMs: INVISIBLE_MS,
        });
        await Promise.all(messages.map((message) => orders.receive(() => fromRocketmq(message))));
        if (messages.length > 0) await client.acknowledge(GROUP, TOPIC, messages);
      } catch (error) {
        if (closed) return;
        onTrouble(`consumer: ${error instanceof Error ? error.message : String(error)}`);
        await sleep(200);
        // A broker that was restarted has forgotten who we are.
        await client.subscribe(GROUP, TOPIC).catch(() => false);
      }
    }
  }

  const broker = rocketmqFromUrl(url, options.environment);
  try {
    await broker.check();
    const queues = await prepareRocketmq({ client, endpoint, topic: TOPIC, group: GROUP, say: options.say });
    const heartbeat = setInterval(() => void client.heartbeat(GROUP).catch(() => undefined), HEARTBEAT_MS);
    const receivers = onePerBroker(queues).flatMap((queue) =>
      Array.from({ length: RECEIVERS }, () => receiveFrom(queue)),
    );
    return {
      broker,
      topic: TOPIC,
      label: `${url.replace(/\?.*$/, "")} topic ${TOPIC}, group ${GROUP}`,
      trouble,
      async close() {
        closed = true;
        clearInterval(heartbeat);
        await broker.close();
        client.close();
        await Promise.all(receivers);
      },
    };
  } catch (error) {
    client.close();
    await broker.close();
    throw error;
  }
}

/** A receive call takes messages of all queues of its broker. */
function onePerBroker(queues: readonly RouteQueue[]): readonly RouteQueue[] {
  return [...new Map(queues.map((queue) => [queue.broker?.name, queue])).values()];
}
