/**
 * HTTP endpoints for each topic: fast ones and bad neighbors. They record when each message first
 * arrived.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { machineMs } from "../relay/messages.ts";

export interface Answer {
  /** Default 204. */
  readonly status?: number;
  /** Default 0; `never`: the request stays open until the client gives up. */
  readonly afterMs?: number | "never";
}

export interface Endpoints {
  readonly url: string;
  /** First arrival of this key, by the machine's monotonic clock. */
  arrivedAt(key: string): number | undefined;
  /** Arrival of a topic's n-th message, from 0. */
  nthArrivalAt(topic: string, index: number): number | undefined;
  arrivals(topic: string): number;
  leave(): Promise<void>;
  /** Accepts connections again on the same port. */
  comeBack(): Promise<void>;
  close(): Promise<void>;
}

/** Topics without an entry are answered at once. */
export async function startEndpoints(answers: Readonly<Record<string, Answer>>): Promise<Endpoints> {
  const arrived = new Map<string, number>();
  const byTopic = new Map<string, number[]>();

  function arrive(topic: string, key: string): void {
    if (arrived.has(key)) return;
    const now = machineMs();
    arrived.set(key, now);
    const times = byTopic.get(topic);
    if (times === undefined) byTopic.set(topic, [now]);
    else times.push(now);
  }

  function receive(request: IncomingMessage, response: ServerResponse): void {
    const topic = String(request.headers["rowpost-topic"] ?? "");
    const { status = 204, afterMs = 0 } = answers[topic] ?? {};
    request.on("end", () => {
      arrive(topic, String(request.headers["rowpost-key"]));
      if (afterMs === "never") return;
      if (afterMs === 0) response.writeHead(status).end();
      else setTimeout(() => response.writeHead(status).end(), afterMs);
    });
    request.on("error", () => undefined);
    request.resume();
  }

  const server = createServer(receive);
  server.keepAliveTimeout = 0;
  async function listen(port: number): Promise<number> {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  }

  async function leave(): Promise<void> {
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  }

  const port = await listen(0);
  return {
    url: `http://127.0.0.1:${port}`,
    arrivedAt: (key) => arrived.get(key),
    nthArrivalAt: (topic, index) => byTopic.get(topic)?.[index],
    arrivals: (topic) => byTopic.get(topic)?.length ?? 0,
    leave,
    async comeBack() {
      await listen(port);
    },
    close: leave,
  };
}
