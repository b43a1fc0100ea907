/**
 * Mosquitto for tests: a process of one's own with a configuration of one's own, and subscribers.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectAsync, type IPublishPacket, type MqttClient } from "mqtt";
import { decodeMqttHeaders } from "../../src/brokers/mqtt/index.ts";
import { freezeProcess } from "../own-process.ts";
import { freePort } from "./redis-server.ts";

/** A server process that can be stopped, killed, frozen and started again on its port. */
export interface PrivateMosquitto {
  readonly port: number;
  /** `127.0.0.1:port` */
  readonly address: string;
  /** For files that its configuration names. */
  readonly folder: string;
  start(): Promise<void>;
  /** SIGTERM: it saves what it keeps for its sessions. */
  stop(): Promise<void>;
  /** SIGKILL. */
  kill(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): void;
  /** Ends it and deletes its data. */
  remove(): Promise<void>;
}

/** Debian puts it where only root's PATH looks. */
const program = "mosquitto";

/** Starts a server with persistence; `config` is added to its configuration file. */
export async function startMosquitto(
  config: string | ((folder: string) => Promise<string>) = "allow_anonymous true",
): Promise<PrivateMosquitto> {
  const folder = await mkdtemp(join(tmpdir(), "rowpost-mqtt-"));
  const port = await freePort();
  const file = join(folder, "mosquitto.conf");
  const added = typeof config === "string" ? config : await config(folder);
  const lines = [
    "user root",
    "log_dest stderr",
    "log_type all",
    "persistence true",
    `persistence_location ${folder}/`,
    "max_queued_messages 1000000",
    `listener ${port} 127.0.0.1`,
    added,
  ];
  await writeFile(file, `${lines.join("\n")}\n`);
  let process: ChildProcess | undefined;

  async function start(): Promise<void> {
    process = spawn(program, ["-c", file], {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...globalThis.process.env, PATH: `${globalThis.process.env["PATH"] ?? ""}:/usr/sbin` },
    });
    await running(process);
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const ending = process;
    if (ending === undefined || ending.exitCode !== null || ending.signalCode !== null) return;
    const ended = new Promise((resolve) => ending.once("exit", resolve));
    ending.kill(signal);
    await ended;
  }

  await start();
  return {
    port,
    address: `127.0.0.1:${port}`,
    folder,
    start,
    stop: () => end("SIGTERM"),
    kill: () => end("SIGKILL"),
    freeze: () => freezeProcess(process?.pid ?? 0),
    thaw: () => process?.kill("SIGCONT"),
    async remove() {
      await end("SIGKILL");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Rejects when it ends instead. What it says later is read too, so that it waits for nobody. */
async function running(server: ChildProcess): Promise<void> {
  let log = "";
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.once("exit", (code) => reject(new Error(`mosquitto ended with ${code}:\n${log}`)));
    server.stderr?.setEncoding("utf8").on("data", (text: string) => {
      log = `${log}${text}`.slice(-2000);
      if (/mosquitto version \S+ running/.test(log)) resolve();
    });
  });
}

/** Of a server that others use too. */
export function uniqueTopic(): string {
  return `rowpost_test/${process.pid}/${randomBytes(4).toString("hex")}`;
}

/** A message as a subscriber got it. */
export interface MqttMessage {
  readonly topic: string;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly contentType: string | undefined;
  /** Sent again by the server, which missed our receipt. */
  readonly isRepeated: boolean;
}

/** How a subscriber logs in, and whether the server keeps its messages while it is away. */
interface SubscriberOptions {
  readonly username?: string;
  readonly password?: string;
  /** Name of a session that outlives the connection. Default: none. */
  readonly session?: string;
}

/** Subscribes with QoS 1; resolves when the server has agreed. */
export async function subscribe(
  address: string,
  topics: readonly string[],
  onMessage: (message: MqttMessage) => void,
  { session, ...login }: SubscriberOptions = {},
): Promise<MqttClient> {
  const kept =
    session === undefined ? {} : { clientId: session, clean: false, properties: { sessionExpiryInterval: 3600 } };
  const client = await connectAsync(`mqtt://${address}`, {
    protocolVersion: 5,
    reconnectPeriod: 50,
    ...kept,
    ...login,
  });
  client.on("error", () => undefined);
  client.on("message", (topic: string, body: Buffer, packet: IPublishPacket) => {
    const { userProperties, contentType } = packet.properties ?? {};
    const headers = decodeMqttHeaders(userProperties);
    onMessage({ topic, body, headers, contentType, isRepeated: packet.dup });
  });
  await client.subscribeAsync([...topics], { qos: 1 });
  return client;
}
