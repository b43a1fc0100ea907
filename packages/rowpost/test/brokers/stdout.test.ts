/** The stdout broker on real pipes. */
import { spawn } from "node:child_process";
import { getEventListeners, once } from "node:events";
import { PassThrough, Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { stdout } from "../../src/brokers/stdout.ts";
import { BrokerError } from "../../src/runtime/errors.ts";
import { noDeadline, outgoing } from "./messages.ts";

describe("stdout broker", () => {
  test("prints one line of JSON for each message, and the number of the line is the receipt", async () => {
    const stream = new PassThrough();
    const broker = stdout({ stream });
    const results = await broker.publish(
      [
        outgoing("1", { orderingKey: "客户" }),
        outgoing("2", { body: new Uint8Array([0, 255]), contentType: "application/octet-stream" }),
      ],
      noDeadline(),
    );
    expect(results).toEqual([
      { status: "sent", messageId: "1" },
      { status: "sent", messageId: "2" },
    ]);
    const lines = (stream.read() as Buffer).toString().split("\n");
    expect(lines).toHaveLength(3);
    expect(JSON.parse(lines[0] ?? "")).toEqual({
      messageId: "1",
      topic: "orders",
      type: "order.created",
      key: "1",
      orderingKey: "客户",
      attempt: 1,
      contentType: "application/json",
      headers: outgoing("1").headers,
      body: '{"order":"1"}',
    });
    expect(JSON.parse(lines[1] ?? "")).toMatchObject({ body: "AP8=", bodyEncoding: "base64" });
    await broker.close();
    expect(stream.listenerCount("error")).toBe(0);
    expect(stream.writable).toBe(true);
  });

  test("waits for a slow reader, in bounded memory", async () => {
    const stream = new PassThrough({ highWaterMark: 1_024 });
    const broker = stdout({ stream });
    const body = "x".repeat(10_000);
    let settled = false;
    const publishing = broker.publish(
      Array.from({ length: 100 }, (_, index) => outgoing(String(index), { body })),
      noDeadline(),
    );
    void publishing.then(() => {
      settled = true;
    });
    let most = 0;
    let received = "";
    while (!settled) {
      most = Math.max(most, stream.writableLength + stream.readableLength);
      received += ((stream.read() as Buffer | null) ?? "").toString();
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
    received += ((stream.read() as Buffer | null) ?? "").toString();
    expect((await publishing).every(({ status }) => status === "sent")).toBe(true);
    expect(received.split("\n")).toHaveLength(101);
    // One chunk waits, never the megabyte of the batch.
    expect(most).toBeLessThan(200_000);
  });

  test("a reader that never reads makes it unknown at the deadline; the rest was not started", async () => {
    const deadline = new AbortController();
    let chunks = 0;
    const stream = new Writable({
      write(_chunk, _encoding, callback) {
        chunks += 1;
        if (chunks === 1) callback();
        else deadline.abort();
      },
    });
    const batch = [
      outgoing("0", { orderingKey: "k" }),
      // From here a second chunk, which is written and never taken: a key is in each chunk once.
      outgoing("1", { orderingKey: "k" }),
      outgoing("2"),
      outgoing("3", { orderingKey: "k" }),
      outgoing("4", { orderingKey: "k" }),
    ];
    const publishing = stdout({ stream }).publish(batch, deadline);
    const results = await publishing;
    expect(results.map(({ status }) => status)).toEqual(["sent", "failed", "failed", "notStarted", "notStarted"]);
    expect(results[1]).toMatchObject({ scope: "unknown", code: "TIMEOUT" });
  });

  test("an error of the stream is the result of the message, and reaches nobody else", async () => {
    const stream = new Writable({
      write(_chunk, _encoding, callback) {
        callback(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
      },
    });
    const broker = stdout({ stream });
    const stop = new AbortController();
    const away = { status: "failed", scope: "connection", retriable: true };
    expect(await broker.publish([outgoing("1")], stop)).toMatchObject([
      { ...away, code: "EPIPE", reason: "write EPIPE" },
    ]);
    expect(getEventListeners(stop.signal, "abort")).toHaveLength(0);
    // The stream emits its error after the callback; without the broker's listener it would end the
    // process.
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    expect(await broker.publish([outgoing("1")], stop)).toMatchObject([{ ...away, code: "STREAM_CLOSED" }]);
  });

  test("a reader that went away is a connection failure, in the call and in check, and ends no process", async () => {
    const reader = spawn("head", ["-n", "1"], { stdio: ["pipe", "ignore", "inherit"] });
    const broker = stdout({ stream: reader.stdin });
    await broker.check();
    expect(await broker.publish([outgoing("1")], noDeadline())).toMatchObject([{ status: "sent" }]);
    await once(reader, "exit");
    const batch = [outgoing("2"), outgoing("3", { orderingKey: "k" }), outgoing("4", { orderingKey: "k" })];
    const results = await broker.publish(batch, noDeadline());
    const away = { status: "failed", scope: "connection", retriable: true };
    expect(results).toMatchObject([away, away, { status: "notStarted" }]);
    expect(["EPIPE", "STREAM_CLOSED", "ECONNRESET"]).toContain(results[0]?.status === "failed" && results[0].code);
    await expect(broker.check()).rejects.toBeInstanceOf(BrokerError);
    await broker.close();
  });
});
