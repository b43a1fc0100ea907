/**
 * NATS servers for tests: a process of one's own with a configuration of one's own, streams with
 * names of one's own, and what is stored in them.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager, type StreamConfig } from "@nats-io/jetstream";
import { connect, type NatsConnection, type NodeConnectionOptions } from "@nats-io/transport-node";
import { decodeNatsHeaders } from "../../src/brokers/nats/index.ts";
import { freezeProcess } from "../own-process.ts";

/** A server process that can be killed, frozen and started again on its port. */
export interface PrivateServer {
  readonly port: number;
  /** `127.0.0.1:port` */
  readonly address: string;
  start(): Promise<void>;
  /** SIGKILL. */
  kill(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): void;
  /** Gives it another `config` while it runs. */
  reload(config: string): Promise<void>;
  /** Ends it and deletes its data. */
  remove(): Promise<void>;
}

/** A message as it is stored. */
export interface StoredMessage {
  readonly sequence: number;
  readonly subject: string;
  readonly body: Uint8Array;
  /** As published: decoded, without NATS's own. */
  readonly headers: Readonly<Record<string, string>>;
  /** As stored, NATS's own among them. */
  readonly rawHeaders: ReadonlyMap<string, string>;
}

/** Debian puts it where only root's PATH looks. */
const program = "nats-server";

export function uniqueName(prefix: string): string {
  return `rowpost_test_${prefix}_${process.pid}_${randomBytes(4).toString("hex")}`;
}

/**
 * Starts a server; `config` is added to its configuration file. JetStream is on unless `jetstream`
 * is false.
 */
export async function startPrivateServer(config = "", jetstream = true): Promise<PrivateServer> {
  const folder = await mkdtemp(join(tmpdir(), "rowpost-nats-"));
  const port = await freePort();
  const file = join(folder, "server.conf");
  const store = jetstream ? `jetstream { store_dir: "${folder}", max_file: 1G }\n` : "";
  const configure = (added: string): Promise<void> =>
    writeFile(file, `listen: "127.0.0.1:${port}"\n${store}${added}\n`);
  await configure(config);
  let process: ChildProcess | undefined;

  async function start(): Promise<void> {
    const started = spawn(program, ["--config", file], {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...globalThis.process.env, PATH: `${globalThis.process.env["PATH"] ?? ""}:/usr/sbin` },
    });
    process = started;
    await logged(started, "Server is ready");
  }

  async function reload(changed: string): Promise<void> {
    if (process === undefined) throw new Error("the server does not run");
    await configure(changed);
    const reloaded = logged(process, "Reloaded server configuration");
    process.kill("SIGHUP");
    await reloaded;
  }

  async function kill(): Promise<void> {
    const running = process;
    if (running === undefined || running.exitCode !== null || running.signalCode !== null) return;
    const ended = new Promise((resolve) => running.once("exit", resolve));
    running.kill("SIGKILL");
    await ended;
  }

  await start();
  return {
    port,
    address: `127.0.0.1:${port}`,
    start,
    kill,
    freeze: () => freezeProcess(process?.pid ?? 0),
    thaw: () => process?.kill("SIGCONT"),
    reload,
    async remove() {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Resolves when the server says this from now on; rejects when it ends before. */
async function logged(server: ChildProcess, words: string): Promise<void> {
  let log = "";
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.once("exit", (code) => reject(new Error(`nats-server ended with ${code}:\n${log}`)));
    server.stderr?.setEncoding("utf8").on("data", (text: string) => {
      log += text;
      if (log.includes(words)) resolve();
    });
  });
}

/**
 * Starts servers that are one cluster. They know each other by the ports in their configuration, so
 * all ports are taken first; another program may take one in between, which shows as a server that
 * does not start.
 */
export async function startCluster(size: number): Promise<PrivateServer[]> {
  const ports = await Promise.all(Array.from({ length: size }, freePort));
  const routes = ports.map((port) => `"nats://127.0.0.1:${port}"`).join(", ");
  return await Promise.all(
    ports.map((port, index) =>
      startPrivateServer(
        `server_name: n${index}\ncluster { name: test, listen: "127.0.0.1:${port}", routes: [ ${routes} ] }`,
      ),
    ),
  );
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Makes and looks at streams. */
export interface Admin {
  readonly connection: NatsConnection;
  createStream(config: Partial<StreamConfig> & { readonly name: string }): Promise<void>;
  updateStream(name: string, config: Partial<StreamConfig>): Promise<void>;
  deleteStream(name: string): Promise<void>;
  /**
   * To be called before the server is killed: resolves when the connection is back. What is asked
   * in between would be lost.
   */
  reconnected(): Promise<void>;
  /** What is stored from a sequence on, in its order. */
  stored(stream: string, from?: number): Promise<StoredMessage[]>;
  close(): Promise<void>;
}

export async function createAdmin(options: NodeConnectionOptions): Promise<Admin> {
  const connection = await connect({ ...options, maxReconnectAttempts: -1, reconnectTimeWait: 50, reconnectJitter: 0 });
  const manager = await jetstreamManager(connection);
  return {
    connection,
    async createStream(config) {
      await manager.streams.add(config);
    },
    async updateStream(name, config) {
      await manager.streams.update(name, config);
    },
    async deleteStream(name) {
      await manager.streams.delete(name).catch(() => undefined);
    },
    async reconnected() {
      for await (const { type } of connection.status()) if (type === "reconnect") return;
    },
    async stored(stream, from = 1) {
      const { state } = await manager.streams.info(stream);
      const messages: StoredMessage[] = [];
      for (let sequence = Math.max(from, state.first_seq); sequence <= state.last_seq; sequence += 1) {
        const message = await manager.streams.getMessage(stream, { seq: sequence });
        if (message === null) continue;
        messages.push({
          sequence,
          subject: message.subject,
          body: message.data,
          headers: decodeNatsHeaders(message.header),
          rawHeaders: new Map([...message.header].map(([name, values]) => [name, values[0] ?? ""])),
        });
      }
      return messages;
    },
    close: () => connection.close(),
  };
}
