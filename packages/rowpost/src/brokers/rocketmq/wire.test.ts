import { describe, expect, test } from "vitest";
import { loadGrpc } from "./grpc.ts";
import { encodeSendRequest, messageBytes, WIRE_FIFO, WIRE_NORMAL, type WireMessage } from "./wire.ts";

const ENVELOPE = { namespace: "", topic: "orders", bornHost: "host-1", bornAtMs: 1_763_724_000_123 };

function wire(changes: Partial<WireMessage> = {}): WireMessage {
  const body = changes.body ?? '{"a":1}';
  return {
    messageId: "order.created:1",
    tag: "order.created",
    key: "1",
    properties: ["rowpost-key", "1"],
    bodyBytes: typeof body === "string" ? Buffer.byteLength(body) : body.length,
    messageType: WIRE_NORMAL,
    group: undefined,
    ...changes,
    body,
  };
}

/** Decodes with proto-loader, so that field numbers and types come from the .proto files. */
async function decode(bytes: Buffer): Promise<unknown> {
  const { methods } = await loadGrpc();
  const sendMessage = methods.SendMessage as unknown as { requestDeserialize(bytes: Buffer): unknown };
  return sendMessage.requestDeserialize(bytes);
}

describe("encodeSendRequest", () => {
  test("a normal message decodes to what was put in", async () => {
    expect(await decode(encodeSendRequest(ENVELOPE, [wire()]))).toEqual({
      messages: [
        {
          topic: { name: "orders" },
          userProperties: { "rowpost-key": "1" },
          systemProperties: {
            tag: "order.created",
            keys: ["1"],
            messageId: "order.created:1",
            bodyEncoding: "IDENTITY",
            messageType: "NORMAL",
            bornTimestamp: { seconds: 1_763_724_000, nanos: 123_000_000 },
            bornHost: "host-1",
          },
          body: Buffer.from('{"a":1}'),
        },
      ],
    });
  });

  test("namespace and group have their fields", async () => {
    const fifo = wire({ messageType: WIRE_FIFO, group: "客户-7" });
    const decoded = await decode(encodeSendRequest({ ...ENVELOPE, namespace: "shop" }, [fifo]));
    expect(decoded).toMatchObject({
      messages: [
        {
          topic: { resourceNamespace: "shop", name: "orders" },
          systemProperties: { messageType: "FIFO", messageGroup: "客户-7" },
        },
      ],
    });
  });

  test.each([
    ["short ASCII", "abc"],
    ["ASCII too long for the loop", "x".repeat(1000)],
    ["Chinese", "订单已创建"],
    ["emoji", "🚚🔑"],
    ["ASCII, then not", `${"a".repeat(20)}é`],
  ])("texts survive: %s", async (_, text) => {
    const message = wire({ tag: text, key: text, messageId: text, properties: [text, text], body: text, group: text });
    expect(await decode(encodeSendRequest(ENVELOPE, [message]))).toMatchObject({
      messages: [
        {
          userProperties: { [text]: text },
          systemProperties: { tag: text, keys: [text], messageId: text, messageGroup: text },
          body: Buffer.from(text),
        },
      ],
    });
  });

  test("half of a surrogate pair becomes a replacement character, not bytes that the server cannot read", async () => {
    const decoded = await decode(encodeSendRequest(ENVELOPE, [wire({ properties: ["a", "x\ud800y"] })]));
    expect(decoded).toMatchObject({ messages: [{ userProperties: { a: "x\ufffdy" } }] });
  });

  test("bytes go out as they are, also as a view into a larger buffer", async () => {
    const bytes = Uint8Array.from({ length: 512 }, (_, index) => index % 256).subarray(100, 400);
    const decoded = await decode(encodeSendRequest(ENVELOPE, [wire({ body: bytes })]));
    expect(decoded).toMatchObject({ messages: [{ body: Buffer.from(bytes) }] });
  });

  test("a large batch keeps order and lengths, up to bodies of 4 MiB", async () => {
    const messages = Array.from({ length: 50 }, (_, index) =>
      wire({ key: `k${index}`, body: "b".repeat(index === 20 ? 4_194_304 : index * 37) }),
    );
    const decoded = (await decode(encodeSendRequest(ENVELOPE, messages))) as {
      messages: { systemProperties: { keys: string[] }; body?: Buffer }[];
    };
    expect(decoded.messages.map(({ systemProperties }) => systemProperties.keys[0])).toEqual(
      messages.map(({ key }) => key),
    );
    expect(decoded.messages.map(({ body }) => body?.length ?? 0)).toEqual(messages.map(({ bodyBytes }) => bodyBytes));
  });

  test("messageBytes is never less than what a message takes", () => {
    const wide = wire({
      tag: "订".repeat(64),
      key: "单".repeat(128),
      properties: ["é".repeat(50), "ß".repeat(50)],
      group: "g",
    });
    for (const message of [wire(), wide]) {
      const one = encodeSendRequest(ENVELOPE, [message]).length;
      const two = encodeSendRequest(ENVELOPE, [message, message]).length;
      expect(messageBytes(message) + 64).toBeGreaterThanOrEqual(two - one);
    }
  });
});
