/**
 * Topic and consumer group of the demo. RocketMQ's gRPC protocol cannot make them; mqadmin does. In
 * a checkout of this repository its script `tools/services/rocketmq` runs mqadmin for a server on
 * this host; elsewhere the command to run is told.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { CommandFailure } from "../cli/failure.ts";
import type { RocketmqClient, RouteQueue } from "./rocketmq-client.ts";

export interface RocketmqPlace {
  readonly client: RocketmqClient;
  /** `host:port` of the proxy. */
  readonly endpoint: string;
  readonly topic: string;
  readonly group: string;
  /** Tells that something is made, which takes some seconds. */
  readonly say: (text: string) => void;
}

/**
 * The proxy learns of a new topic or group within this time; its cache of "there is none" may be 20
 * s old.
 */
const LEARN_MS = 30_000;

/** Makes what is missing, introduces the consumer, and returns the topic's queues. */
export async function prepareRocketmq(place: RocketmqPlace): Promise<readonly RouteQueue[]> {
  const { client, topic, group } = place;
  const hasTopic = (await client.route(topic)) !== undefined;
  if (!hasTopic) await make(place, "topic", topic, `updateTopic -c DefaultCluster -t ${topic} -a +message.type=NORMAL`);
  const queues = await until(() => client.route(topic), `topic ${topic}`);
  if (!(await client.subscribe(group, topic))) {
    await make(place, "group", group, `updateSubGroup -c DefaultCluster -g ${group}`);
    await until(async () => ((await client.subscribe(group, topic)) ? true : undefined), `consumer group ${group}`);
  }
  return queues;
}

async function make(place: RocketmqPlace, verb: "topic" | "group", name: string, admin: string): Promise<void> {
  const [host, port = "8081"] = place.endpoint.split(":");
  // src/demo and dist/demo are equally deep in a checkout; an installed package has no such
  // neighbor.
  const script = fileURLToPath(new URL("../../../../tools/services/rocketmq", import.meta.url));
  const isHere = host === "127.0.0.1" || host === "localhost";
  const command = `mqadmin ${admin} -n NAMESERVER:9876`;
  if (!isHere || !existsSync(script)) {
    throw new CommandFailure(
      `RocketMQ at ${place.endpoint} has no ${verb} ${name}, and its clients cannot make one; run: ${command}`,
    );
  }
  place.say(`making the ${verb} ${name} …`);
  try {
    const env = { ...process.env, ROCKETMQ_GRPC_PORT: port };
    await promisify(execFile)(script, [verb, name], { env, timeout: 60_000 });
  } catch (cause) {
    throw new CommandFailure(
      `RocketMQ at ${place.endpoint} has no ${verb} ${name}, and making it failed; run: ${command}`,
      { cause },
    );
  }
}

async function until<Found>(look: () => Promise<Found | undefined>, what: string): Promise<Found> {
  const endsAt = performance.now() + LEARN_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > endsAt) throw new CommandFailure(`RocketMQ does not show the ${what} that was just made`);
    await sleep(200);
  }
}
