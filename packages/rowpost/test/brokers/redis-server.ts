/** A Redis for tests: servers of one's own to kill, freeze and fill, and a reader of streams. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { decodeRedisEntry } from "../../src/brokers/redis/index.ts";
import type { ArrivedMessage, BrokerHarness } from "../../src/testing/index.ts";

/** A name that no other test has. */
export function uniqueName(name: string): string {
  return `rowpost-test-${process.pid}-${randomBytes(3).toString("hex")}-${name}`;
}

/** A server that belongs to one test. */
export interface PrivateRedis {
  readonly port: number;
  /**
   * Ends it with SIGKILL, before this returns its promise; resolves when it is gone. It must be
   * running.
   */
  kill(): Promise<void>;
  /** Starts it again on the same port with the same data. */
  start(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Ends it and deletes its data. */
  remove(): Promise<void>;
}

const script = fileURLToPath(new URL("../../../../tools/services/redis", import.meta.url));

/**
 * Starts a server with more words on its command line, such as `["--requirepass", "secret"]`; none
 * of them may hold a blank.
 */
export async function startPrivateRedis(words: readonly string[] = []): Promise<PrivateRedis> {
  const port = await freePort();
  const data = await mkdtemp(path.join(tmpdir(), "rowpost-test-redis-"));
  const env = { ...process.env, REDIS_PORT: String(port), REDIS_DATA: data, REDIS_ARGS: words.join(" ") };
  const run = async (verb: string): Promise<void> => {
    await promisify(execFile)(script, [verb], { env, timeout: 60_000 });
  };
  const server: PrivateRedis = {
    port,
    kill() {
      // The script then waits until it is gone.
      process.kill(Number(readFileSync(path.join(data, "pid"), "utf8")), "SIGKILL");
      return run("kill");
    },
    start: () => run("start"),
    freeze: () => run("freeze"),
    thaw: () => run("thaw"),
    async remove() {
      await run("kill");
      await rm(data, { recursive: true, force: true });
      await rm(`${data}.lock`, { recursive: true, force: true });
    },
  };
  try {
    await server.start();
  } catch (error) {
    const log = await readFile(path.join(data, "server.log"), "utf8").catch(() => "");
    await server.remove();
    throw new Error(`Redis did not start: ${log}`, { cause: error });
  }
  return server;
}

/** A port that nobody listens on. */
export async function freePort(): Promise<number> {
  const probe = createServer();
  const port = await listen(probe);
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Passes bytes on, and stops in the middle of a write. */
export interface StallingRelay {
  readonly port: number;
  /** Lets this many more bytes through to the server, and holds the rest back. */
  stallAfter(bytes: number): void;
  goOn(): void;
  close(): Promise<void>;
}

/** Starts one in front of a server on this host. */
export async function createStallingRelay(targetPort: number): Promise<StallingRelay> {
  let allowed = Number.POSITIVE_INFINITY;
  let held: (() => void)[] = [];
  const sockets = new Set<Socket>();
  const relay = createServer((client) => {
    const target = connect(targetPort, "127.0.0.1");
    for (const socket of [client, target]) {
      sockets.add(socket);
      socket
        .on("error", () => undefined)
        .on("close", () => {
          client.destroy();
          target.destroy();
        });
    }
    target.pipe(client);
    client.on("data", (chunk) => {
      const passed = Math.min(chunk.length, allowed);
      allowed -= passed;
      if (passed > 0) target.write(chunk.subarray(0, passed));
      if (passed < chunk.length) held.push(() => target.write(chunk.subarray(passed)));
    });
  });
  const port = await listen(relay);
  return {
    port,
    stallAfter(bytes) {
      allowed = bytes;
    },
    goOn() {
      allowed = Number.POSITIVE_INFINITY;
      for (const write of held) write();
      held = [];
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => relay.close(resolve));
    },
  };
}

/**
 * Commands to a server, beside the broker under test: fails at once while the server is away, and
 * knows it when it is back.
 */
export function createAdmin(
  port: number,
  options: { readonly password?: string; readonly username?: string; readonly db?: number } = {},
): Redis {
  const admin = new Redis({
    host: "127.0.0.1",
    port,
    ...options,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: true,
    retryStrategy: () => 50,
  });
  admin.on("error", () => undefined);
  return admin;
}

/** Reads streams from their beginning, as XRANGE gives them: a `consume` for harnesses. */
export function createStreamReader(admin: Redis): BrokerHarness["consume"] {
  const logs = new Map<string, { lastId: string; messages: ArrivedMessage[] }>();

  async function readOn(topic: string): Promise<readonly ArrivedMessage[]> {
    const log = logs.get(topic) ?? { lastId: "-", messages: [] };
    logs.set(topic, log);
    const entries = await admin.xrangeBuffer(topic, log.lastId === "-" ? "-" : `(${log.lastId}`, "+");
    for (const [id, fields] of entries) {
      const { body, headers, contentType } = decodeRedisEntry(fields);
      const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
      log.messages.push({ body, contentType, headers: Object.fromEntries(named), receivedAtMs: Date.now() });
      log.lastId = id.toString();
    }
    return log.messages;
  }

  return async ({ topic, keyPrefix, count, withinMs }) => {
    const giveUpAt = performance.now() + withinMs;
    for (;;) {
      const all = await readOn(topic).catch(() => logs.get(topic)?.messages ?? []);
      const mine = all.filter(({ headers }) => headers["rowpost-key"]?.startsWith(keyPrefix));
      if (new Set(mine.map(({ headers }) => headers["rowpost-key"])).size >= count) return mine;
      if (performance.now() > giveUpAt) return mine;
      await delay(10);
    }
  };
}
