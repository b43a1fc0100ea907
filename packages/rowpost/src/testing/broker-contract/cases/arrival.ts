import assert from "node:assert/strict";
import type { OutgoingMessage } from "../../../brokers/broker.ts";
import type { BrokerContractCase } from "../case.ts";
import type { BrokerCaseContext } from "../context.ts";
import { assertSent } from "../context.ts";
import type { ArrivedMessage } from "../harness.ts";

export const arrivalCases: readonly BrokerContractCase[] = [
  {
    name: "the adapter says of itself what the harness expects",
    async run({ broker, harness }) {
      assert.deepEqual(broker.features, harness.features);
      assert.match(broker.name, /^[a-z][a-z0-9-]*$/);
    },
  },
  {
    name: "a message arrives with its body, headers and identity",
    async run(context) {
      const headers = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tenant: "blue" };
      const message = context.message({ headers, body: '{"order":42,"total":"9.90"}' });
      await context.publishAll([message]);
      assertSame(await firstArrival(context, message), message);
    },
  },
  {
    name: "a batch arrives whole, each message once, to its own topic",
    async run(context) {
      const { main, other } = context.harness.topics;
      const batch = Array.from({ length: 60 }, (_, index) =>
        context.message({ topic: index % 3 === 0 ? other : main }),
      );
      await context.publishAll(batch);
      for (const topic of [main, other]) {
        const expected = batch.filter((message) => message.topic === topic);
        const received = await context.arrivals(topic, expected);
        assert.equal(received.length, expected.length, `messages in ${topic}`);
      }
    },
  },
  {
    name: "an empty batch gives no results",
    async run(context) {
      assert.deepEqual(await context.publish([]), []);
    },
  },
  {
    name: "calls that run side by side do not disturb each other",
    async run(context) {
      const calls = Array.from({ length: 6 }, () => Array.from({ length: 20 }, () => context.message()));
      await Promise.all(calls.map((batch) => context.publishAll(batch)));
      const received = await context.arrivals(context.harness.topics.main, calls.flat());
      assert.equal(received.length, 120);
    },
  },
  {
    name: "a binary body arrives byte for byte",
    async run(context) {
      // A view into a larger buffer: an adapter that sends the whole buffer sends 512 bytes.
      const bytes = Uint8Array.from({ length: 512 }, (_, index) => index % 256).subarray(128, 384);
      const message = context.message({ body: bytes, contentType: "application/octet-stream" });
      await context.publishAll([message]);
      assertSame(await firstArrival(context, message), message);
    },
  },
  {
    name: "Chinese, emoji and blanks survive in type, key, headers and body",
    async run(context) {
      const message = context.message({
        type: "订单.已创建 v2",
        key: `${context.keyPrefix} 钥匙/🔑 é=ü%41`,
        headers: { city: "上海市", greeting: "grüß dich 👋", percent: "100%25", plain: "a b;c,d=e" },
        body: JSON.stringify({ 备注: "加急 🚚 “quoted”", line: "a\nb\tc" }),
      });
      await context.publishAll([message]);
      assertSame(await firstArrival(context, message), message);
    },
  },
  {
    name: "headers that the protocol cannot carry are encoded or refused, never lost",
    async run(context) {
      const neighbor = context.message();
      const odd = [
        context.message({ headers: { note: "line one\r\nline two" } }),
        context.message({ headers: { note: " blanks at both ends " } }),
        context.message({ headers: { note: "" } }),
        context.message({ headers: { "name with blank": "value" } }),
        context.message({ headers: { 城市: "value" } }),
      ];
      const results = await context.publish([...odd, neighbor]);
      assertSent(results.at(-1));
      for (const [index, message] of odd.entries()) await assertArrivedOrRefused(context, message, results[index]);
    },
  },
  {
    name: "an empty body arrives or is refused, never changed",
    async run(context) {
      const neighbor = context.message();
      const empty = context.message({ body: "", contentType: "text/plain" });
      const results = await context.publish([empty, neighbor]);
      assertSent(results[1]);
      await assertArrivedOrRefused(context, empty, results[0]);
    },
  },
  {
    name: "a big body arrives whole",
    timeoutMs: 40_000,
    async run(context) {
      const { features, bigBodyBytes = 1_048_576 } = context.harness;
      const size = features.maxBodyBytes ?? bigBodyBytes;
      // Varying digits, so that a lost or doubled piece shows.
      const body = Buffer.alloc(size, Array.from({ length: 10_007 }, (_, index) => index % 10).join(""));
      const message = context.message({ body, contentType: "application/octet-stream" });
      await context.publishAll([message]);
      assertSame(await firstArrival(context, message), message);
    },
  },
  {
    name: "a second attempt carries the same identity",
    async run(context) {
      const first = context.message();
      const second = context.message({ key: first.key, body: first.body, attempt: 2 });
      await context.publishAll([first]);
      await context.publishAll([second]);
      const { main } = context.harness.topics;
      // A broker may drop the duplicate, so there is no count to wait for; a later message marks
      // the end.
      const marker = context.message();
      await context.publishAll([marker]);
      const copies = (await context.arrivals(main, [first, marker])).filter(
        ({ headers }) => headers["rowpost-key"] === first.key,
      );
      assert.ok(copies.length >= 1);
      for (const copy of copies) {
        assert.equal(copy.headers["rowpost-id"], first.headers["rowpost-id"]);
        assert.equal(copy.dedupeId, copies[0]?.dedupeId, "what consumers know copies by");
      }
    },
  },
];

async function firstArrival(context: BrokerCaseContext, message: OutgoingMessage): Promise<ArrivedMessage | undefined> {
  const received = await context.arrivals(message.topic, [message]);
  return received.find(({ headers }) => headers["rowpost-key"] === message.key);
}

async function assertArrivedOrRefused(
  context: BrokerCaseContext,
  message: OutgoingMessage,
  result: { readonly status: string; readonly scope?: string; readonly retriable?: boolean } | undefined,
): Promise<void> {
  if (result?.status === "sent") {
    assertSame(await firstArrival(context, message), message);
    return;
  }
  const refused = result?.status === "failed" && result.scope === "message" && result.retriable === false;
  assert.ok(refused, `sent, or refused as a message that no retry can help: ${JSON.stringify(result)}`);
}

function assertSame(received: ArrivedMessage | undefined, message: OutgoingMessage): void {
  assert.ok(received !== undefined);
  for (const [name, value] of Object.entries(message.headers)) {
    assert.equal(received.headers[name.toLowerCase()], value, `header ${name}`);
  }
  const sent = typeof message.body === "string" ? Buffer.from(message.body) : message.body;
  assert.equal(received.body.length, sent.length, "length of the body");
  assert.ok(Buffer.compare(received.body, sent) === 0, "bytes of the body");
  if (received.contentType !== undefined) assert.equal(received.contentType, message.contentType);
}
