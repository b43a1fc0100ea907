/**
 * RocketMQ's gRPC protocol cannot create topic and group; mqadmin can. In a checkout of this
 * repository the script `tools/services/rocketmq` runs mqadmin for a server on this host; elsewhere
 * the demo prints the commands.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { BrokerError } from "rowpost";
import type { Consumption } from "rowpost/consume";
import { rocketmqFromUrl, rocketmqOptionsFromUrl } from "rowpost/rocketmq";
import { brokerLabel } from "../broker-url.ts";
import { consumeRocketmqTopic } from "../consumers/rocketmq.ts";
import { CommandFailure } from "../failure.ts";
import type { StartConsumer } from "./consumer.ts";

const TOPIC = "rowpost_demo_orders";
const GROUP = "rowpost_demo";
const COMMANDS = [
  `mqadmin updateTopic -n NAMESERVER:9876 -c DefaultCluster -t ${TOPIC} -a +message.type=NORMAL`,
  `mqadmin updateSubGroup -n NAMESERVER:9876 -c DefaultCluster -g ${GROUP}`,
].join(" && ");
/** The proxy sees a new topic or group within this time; a cached "missing" may be 20 s old. */
const LEARN_MS = 30_000;

export const startRocketmqConsumer: StartConsumer = async (url, { atEnd, environment, orders, say }) => {
  const broker = rocketmqFromUrl(url, environment);
  atEnd(() => broker.close());
  await broker.check();
  const place = { url, environment, topic: TOPIC, group: GROUP };
  const consume = (): Promise<Consumption> => consumeRocketmqTopic(place, orders.options);
  let consumption: Consumption;
  try {
    consumption = await consume();
  } catch (error) {
    if (!isMissing(error)) throw error;
    const { endpoints } = rocketmqOptionsFromUrl(url, environment);
    await make(String([endpoints].flat()[0]), say, error);
    consumption = await untilThere(consume);
  }
  atEnd(() => consumption.close());
  return { broker, topic: TOPIC, label: `${brokerLabel(url)} topic ${TOPIC}, group ${GROUP}` };
};

function isMissing(error: unknown): boolean {
  return error instanceof BrokerError && error.code === "CANNOT_CONSUME";
}

async function make(endpoint: string, say: (text: string) => void, cause: unknown): Promise<void> {
  const [host, port = "8081"] = endpoint.split(":");
  // src/demo and dist/demo are equally deep in a checkout; an installed package has no such
  // neighbor.
  const script = fileURLToPath(new URL("../../../../tools/services/rocketmq", import.meta.url));
  const isHere = host === "127.0.0.1" || host === "localhost";
  const failure = (what: string, reason: unknown): CommandFailure =>
    new CommandFailure(`RocketMQ lacks the demo's topic or group, and ${what}; run: ${COMMANDS}`, { cause: reason });
  if (!isHere || !existsSync(script)) throw failure("its clients cannot make them", cause);
  say(`making the topic ${TOPIC} and the group ${GROUP} …`);
  const options = { env: { ...process.env, ROCKETMQ_GRPC_PORT: port }, timeout: 60_000 };
  try {
    await promisify(execFile)(script, ["topic", TOPIC], options);
    await promisify(execFile)(script, ["group", GROUP], options);
  } catch (error) {
    throw failure("making them failed", error);
  }
}

async function untilThere(consume: () => Promise<Consumption>): Promise<Consumption> {
  const endsAt = performance.now() + LEARN_MS;
  for (;;) {
    try {
      return await consume();
    } catch (error) {
      if (!isMissing(error) || performance.now() > endsAt) throw error;
      await sleep(200);
    }
  }
}
