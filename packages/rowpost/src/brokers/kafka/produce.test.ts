/**
 * Checks the bytes with a reader written from Kafka's protocol description.
 * test/brokers/kafka.test.ts checks them with a broker and a consumer.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { OutgoingMessage } from "../broker.ts";
import { recordOf } from "./carry.ts";
import { crc32c } from "./crc32c.ts";
import { decodeProduced, encodeProduce } from "./produce.ts";

function message(key: string, body: string, headers: Readonly<Record<string, string>>): OutgoingMessage {
  const rest = { orderingKey: undefined, attempt: 1 };
  return { id: "1", type: "t", key, topic: "t", body, contentType: "application/json", headers, ...rest };
}

interface ReadBatch {
  readonly partition: number;
  readonly records: readonly { readonly key: string; readonly value: string; readonly headers: readonly string[][] }[];
}

function read(bytes: Buffer): { readonly head: readonly unknown[]; readonly batches: readonly ReadBatch[] } {
  let at = 0;
  const take = (length: number): Buffer => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  const int16 = (): number => take(2).readInt16BE();
  const int32 = (): number => take(4).readInt32BE();
  const int64 = (): bigint => take(8).readBigInt64BE();
  const varint = (): number => {
    let raw = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = BigInt(take(1).readUInt8());
      raw |= (byte & 127n) << shift;
      if (byte < 128n) break;
      // Only the shortest form is valid.
      expect(bytes[at]).not.toBe(0);
    }
    return Number((raw >> 1n) ^ -(raw & 1n));
  };
  const text = (): string => String(take(varint()));
  const record = (index: number): ReadBatch["records"][number] => {
    const length = varint();
    const end = at + length;
    expect([take(1)[0], varint(), varint()]).toEqual([0, 0, index]);
    const key = text();
    const value = text();
    const headers = Array.from({ length: varint() }, () => [text(), text()]);
    expect(at).toBe(end);
    return { key, value, headers };
  };
  const batch = (): ReadBatch => {
    const partition = int32();
    const size = int32();
    const end = at + size;
    expect([int64(), int32(), int32(), take(1)[0]]).toEqual([0n, size - 12, -1, 2]);
    expect(take(4).readUInt32BE()).toBe(crc32c(bytes, at, end));
    const [attributes, last, first, newest] = [int16(), int32(), int64(), int64()];
    expect([attributes, newest]).toEqual([0, first]);
    expect([int64(), int16(), int32()]).toEqual([-1n, -1, -1]);
    const records = Array.from({ length: int32() }, (_, index) => record(index));
    expect([records.length, at]).toEqual([last + 1, end]);
    return { partition, records };
  };
  const head = [int16(), int16(), int32(), int32(), String(take(int16()))];
  const batches = Array.from({ length: int32() }, batch);
  expect(at).toBe(bytes.length);
  return { head, batches };
}

describe("a produce request", () => {
  test("acknowledged by all replicas, with the batches of several partitions", () => {
    const records = ["a", "b"].map((key) => recordOf(message(key, "{}", { "rowpost-id": `t:${key}` })));
    const request = read(
      encodeProduce(
        "订单",
        [3, 0].map((partition) => ({ partition, records })),
        1234,
      ),
    );
    expect(request.head).toEqual([-1, -1, 1234, 1, "订单"]);
    const expected = ["a", "b"].map((key) => ({ key, value: "{}", headers: [["rowpost-id", `t:${key}`]] }));
    expect(request.batches).toEqual([3, 0].map((partition) => ({ partition, records: expected })));
  });

  test("holds every text whole, however long and in whatever script", () => {
    // Lengths at which the size of a length field changes, in letters or in bytes.
    const length = fc.oneof(fc.constantFrom(0, 1, 21, 22, 63, 64, 65, 2730, 2731, 8191, 8192), fc.nat(200));
    const text = fc
      .tuple(fc.constantFrom("x", "é", "客", "😀", "\ud800"), length)
      .map(([letter, n]) => letter.repeat(n));
    const one = fc.tuple(text, text, fc.dictionary(text, text, { maxKeys: 5 }));
    fc.assert(
      fc.property(fc.array(one, { minLength: 1, maxLength: 70 }), (all) => {
        const records = all.map((parts) => recordOf(message(...parts)));
        const { batches } = read(encodeProduce("t", [{ partition: 0, records }], 1));
        expect(batches[0]?.records).toEqual(
          all.map(([key, value, headers]) => ({
            key: wellFormed(key),
            value: wellFormed(value),
            headers: Object.entries(headers).map((header) => header.map(wellFormed)),
          })),
        );
      }),
      { numRuns: 60 },
    );
  });
});

/** As UTF-8 encodes it. */
function wellFormed(text: string): string {
  return String(Buffer.from(text));
}

test.each([3, 4, 5, 7])("an answer of version %d tells of every partition", (version) => {
  const bytes = Buffer.alloc(100);
  let at = bytes.writeInt32BE(1, 0);
  at = bytes.writeInt16BE(6, at);
  at += bytes.write("orders", at);
  at = bytes.writeInt32BE(2, at);
  for (const [partition, code, offset] of [
    [3, 0, 9_007_199_254_740_993n],
    [1, 10, -1n],
  ] as const) {
    at = bytes.writeInt32BE(partition, at);
    at = bytes.writeInt16BE(code, at);
    at = bytes.writeBigInt64BE(offset, at);
    at = bytes.writeBigInt64BE(-1n, at);
    if (version >= 5) at = bytes.writeBigInt64BE(0n, at);
  }
  at = bytes.writeInt32BE(250, at);
  expect(decodeProduced(bytes.subarray(0, at), version)).toEqual({
    partitions: [
      { partition: 3, errorCode: 0, baseOffset: 9_007_199_254_740_993n },
      { partition: 1, errorCode: 10, baseOffset: -1n },
    ],
    throttleMs: 250,
  });
});
