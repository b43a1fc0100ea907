/**
 * A real HTTP consumer on 127.0.0.1 that checks signatures, and often enough is busy, slow to
 * recover or drops the connection.
 */
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { http, verifyWebhook } from "rowpost/http";
import { fromWebhook } from "rowpost/inbox";
import type { DemoConsumer } from "./consumer.ts";
import type { Orders } from "./orders.ts";

/** What the consumer does to a request, and how often. */
const TROUBLE: readonly { readonly name: Trouble; readonly share: number }[] = [
  { name: "503", share: 0.05 },
  { name: "429", share: 0.01 },
  { name: "dropped before", share: 0.02 },
  { name: "dropped after", share: 0.02 },
];
type Trouble = "503" | "429" | "dropped before" | "dropped after";

const TOPIC = "orders";

/** Starts it on a free port. */
export async function startHttpConsumer(orders: Orders, random: () => number = Math.random): Promise<DemoConsumer> {
  const secret = `whsec_${randomBytes(24).toString("base64")}`;
  const trouble = new Map<string, number>();
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") return answer(response, 204);
    const body = await readBody(request);
    if (!verifyWebhook({ secret, headers: request.headers, body })) return answer(response, 401);
    const what = pickTrouble(random());
    if (what !== undefined) trouble.set(what, (trouble.get(what) ?? 0) + 1);
    if (what === "503") return answer(response, 503);
    if (what === "429") return answer(response, 429, { "retry-after": "1" });
    if (what === "dropped before") return void response.destroy();
    const message = await orders.handle(() => fromWebhook(request.headers));
    // The relay cannot know whether the order arrived, and sends it again: a duplicate.
    if (what === "dropped after") return void response.destroy();
    if (message !== undefined) orders.confirm(message);
    answer(response, 204);
  }

  const port = await listen(server);
  const url = `http://127.0.0.1:${port}/orders`;
  const broker = http({ url, secret });
  return {
    broker,
    topic: TOPIC,
    label: url,
    trouble,
    async close() {
      await broker.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function pickTrouble(value: number): Trouble | undefined {
  let bound = 0;
  for (const { name, share } of TROUBLE) {
    bound += share;
    if (value < bound) return name;
  }
  return undefined;
}

function answer(response: ServerResponse, status: number, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(status, headers).end();
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function listen(server: ReturnType<typeof createServer>): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : 0);
    });
  });
}
