import { expect, test } from "vitest";
import { createFrameReader, encodeHead } from "./frames.ts";

const frame = (form: number, header: Buffer, body = Buffer.alloc(0)): Buffer => {
  const lengths = Buffer.alloc(8);
  lengths.writeUInt32BE(4 + header.length + body.length, 0);
  lengths.writeUInt32BE(form * 0x1_00_00_00 + header.length, 4);
  return Buffer.concat([lengths, header, body]);
};
const json = frame(
  0,
  Buffer.from('{"code":17,"opaque":7,"flag":1,"remark":"no","extFields":{"a":"1"}}'),
  Buffer.from("body"),
);
const text = (length: 2 | 4, value: string): Buffer => {
  const bytes = Buffer.alloc(length);
  bytes.writeUIntBE(Buffer.byteLength(value), 0, length);
  return Buffer.concat([bytes, Buffer.from(value)]);
};
const fields = Buffer.concat([text(2, "msgId"), text(4, "7F"), text(2, "queueId"), text(4, "3")]);
const binary = frame(
  1,
  Buffer.concat([
    Buffer.from([0, 11, 0, 1, 0x97, 0, 0, 0, 9, 0, 0, 0, 1]),
    text(4, "订"),
    Buffer.from([0, 0, 0, fields.length]),
    fields,
  ]),
);

test("answers are read whatever pieces they come in, with headers of both forms", () => {
  const bytes = Buffer.concat([json, binary, json]);
  for (const size of [1, 3, 7, 50, bytes.length]) {
    const reader = createFrameReader();
    const frames = [];
    for (let at = 0; at < bytes.length; at += size) frames.push(...reader.read(bytes.subarray(at, at + size)));
    expect(frames).toMatchObject([
      { code: 17, opaque: 7, isAnswer: true, remark: "no", fields: { a: "1" }, body: Buffer.from("body") },
      { code: 11, opaque: 9, isAnswer: true, remark: "订", fields: { msgId: "7F", queueId: "3" } },
      { opaque: 7 },
    ]);
  }
});

test("what speaks something else is told from its first bytes", () => {
  expect(() => createFrameReader().read(Buffer.from("HTTP/1.1 400 Bad Request\r\n"))).toThrow(
    /does not speak RocketMQ/,
  );
  expect(() => createFrameReader().read(frame(9, Buffer.from("{}")))).toThrow(/unknown form 9/);
});

test("a request's frame counts the body behind it", () => {
  const head = encodeHead({ code: 310, fields: { b: "订" }, body: Buffer.alloc(5) }, 3);
  expect(head.readUInt32BE(0)).toBe(head.length - 4 + 5);
  expect(JSON.parse(head.toString("utf8", 8))).toMatchObject({ code: 310, opaque: 3, extFields: { b: "订" } });
});
