/**
 * A webhook receiver on 127.0.0.1 that is sometimes busy, slow, drops the connection, or gets a
 * request twice.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { consumeWebhooks } from "rowpost/consume";
import { http } from "rowpost/http";
import type { ConsumerParts, DemoConsumer } from "./consumer.ts";

const TROUBLE = { "503": 0.05, "429": 0.01, "dropped before": 0.02, "dropped after": 0.02, "came twice": 0.02 };
type Trouble = keyof typeof TROUBLE;

const TOPIC = "orders";

export async function startHttpConsumer({ atEnd, orders }: ConsumerParts): Promise<DemoConsumer> {
  const secret = `whsec_${randomBytes(24).toString("base64")}`;
  const trouble = new Map<string, number>();
  const webhooks = consumeWebhooks({ ...orders.options, secret });
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") return void response.writeHead(204).end();
    const what = pickTrouble();
    if (what !== undefined) trouble.set(what, (trouble.get(what) ?? 0) + 1);
    if (what === "503") return void response.writeHead(503).end();
    if (what === "429") return void response.writeHead(429, { "retry-after": "1" }).end();
    if (what === "dropped before") return void response.destroy();
    const received = { headers: request.headers, body: await bodyOf(request) };
    const { status, headers, body } = await webhooks.receive(received);
    // Like a proxy that has lost the answer.
    if (what === "came twice") await webhooks.receive(received);
    // The relay cannot know whether the order arrived, but the table shows that it is confirmed.
    if (what === "dropped after") return void response.destroy();
    response.writeHead(status, headers).end(body);
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  atEnd(async () => {
    server.closeAllConnections();
    server.close();
    await webhooks.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders`;
  const broker = http({ url, secret });
  atEnd(() => broker.close());
  return { broker, topic: TOPIC, label: url, trouble };
}

function pickTrouble(): Trouble | undefined {
  let left = Math.random();
  for (const [name, share] of Object.entries(TROUBLE)) {
    left -= share;
    if (left < 0) return name as Trouble;
  }
  return undefined;
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
