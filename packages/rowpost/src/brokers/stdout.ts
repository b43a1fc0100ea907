/**
 * Prints each message as one line of JSON, for a look at a relay's output or a pipe to another
 * program (`rowpost relay --broker stdout: | …`).
 */
import { hostname } from "node:os";
import type { Writable } from "node:stream";
import { checkOptions } from "../runtime/check-options.ts";
import { BrokerError } from "../runtime/errors.ts";
import type { Broker, OutgoingMessage, PublishFailed } from "./broker.ts";
import { type Call, createCall, type Load } from "./publishing/call.ts";
import { failed } from "./publishing/failures.ts";
import { bodyBytes, type PlacedMessage, startRequests } from "./publishing/lanes.ts";
import { createBroker } from "./publishing/lifecycle.ts";
import { createWindow } from "./publishing/window.ts";

/** Options of {@link stdout}. */
export interface StdoutBrokerOptions {
  /** Default: this process's standard output. The broker never closes it. */
  readonly stream?: Writable | undefined;
}

export interface StdoutLine {
  /** The receipt: the line number since the start, from 1. */
  readonly messageId: string;
  readonly topic: string;
  readonly type: string;
  readonly key: string;
  readonly orderingKey?: string | undefined;
  readonly attempt: number;
  readonly contentType: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Text unchanged (JSON is not parsed, so it is a string); base64 if it is binary. */
  readonly body: string;
  readonly bodyEncoding?: "base64" | undefined;
}

/** Lines are written together up to about this size, the capacity of a pipe on Linux. */
const CHUNK_BYTES = 65_536;
const LINE_BYTES = 256;

/**
 * Creates a broker that prints. A message is `sent` once the stream has passed its line to the
 * operating system. A slow reader slows the relay down, because each chunk waits for the drain. A
 * reader that left (EPIPE), a full disk or a destroyed stream is a connection failure: nothing is
 * counted and the relay waits.
 */
export function stdout(options: StdoutBrokerOptions = {}): Broker {
  checkOptions("stdout broker", options, { stream: { has: "write", from: "a stream that can be written to" } });
  const { stream = process.stdout } = options;
  const window = createWindow();
  let lineCount = 0;
  // Without a listener an EPIPE would end the process; the write's callback reports it as well.
  const ignoreError = (): void => undefined;
  stream.on("error", ignoreError);

  function print(call: Call<Line>, load: Load<Line>): PublishFailed | undefined {
    if (!stream.writable) return STREAM_CLOSED;
    const lines = load.items.map(({ message }) => {
      lineCount += 1;
      return lineOf(message, String(lineCount));
    });
    stream.write(lines.map((line) => `${JSON.stringify(line)}\n`).join(""), (error) => {
      if (error) call.settle(load, failed("connection", codeOf(error), error.message));
      else
        call.settle(
          load,
          lines.map(({ messageId }) => messageId),
        );
    });
    return undefined;
  }

  return createBroker({
    name: "stdout",
    title: "stdout",
    // Only this process can see the messages.
    target: `${hostname()}:${process.pid}`,
    features: () => ({ ordering: "key", reportsUnknownTopic: false, maxBodyBytes: undefined }),
    publish(batch, scope) {
      const call = createCall<Line>({
        count: batch.length,
        scope,
        window,
        carrier: (own) => ({
          hand: (load) => print(own, load),
          leave: () => failed("unknown", "TIMEOUT", "the output stream did not take the line before the deadline"),
        }),
      });
      startRequests(call, "stdout", chunksOf(batch));
      return call.done;
    },
    async check() {
      if (stream.writable) return;
      const advice = "is the reader of the pipe still running?";
      throw new BrokerError("BROKER_UNREACHABLE", `cannot print messages: ${STREAM_CLOSED.reason}; ${advice}`);
    },
    async close() {
      stream.off("error", ignoreError);
    },
  });
}

interface Line extends PlacedMessage {
  readonly bytes: number;
}

/** Each ordering key once: its next message waits until this one is written. */
function chunksOf(batch: readonly OutgoingMessage[]): Line[][] {
  const chunks: Line[][] = [];
  let keys = new Set<string>();
  let chunkBytes = CHUNK_BYTES;
  for (const [index, message] of batch.entries()) {
    const { orderingKey } = message;
    const bytes = bodyBytes(message) + LINE_BYTES;
    if (chunkBytes >= CHUNK_BYTES || (orderingKey !== undefined && keys.has(orderingKey))) {
      chunks.push([]);
      keys = new Set();
      chunkBytes = 0;
    }
    if (orderingKey !== undefined) keys.add(orderingKey);
    chunks.at(-1)?.push({ index, orderingKey, message, bytes });
    chunkBytes += bytes;
  }
  return chunks;
}

function lineOf(message: OutgoingMessage, messageId: string): StdoutLine {
  const { topic, type, key, orderingKey, attempt, contentType, headers, body } = message;
  const line = { messageId, topic, type, key, orderingKey, attempt, contentType, headers };
  if (typeof body === "string") return { ...line, body };
  const base64 = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("base64");
  return { ...line, body: base64, bodyEncoding: "base64" };
}

const STREAM_CLOSED = failed("connection", "STREAM_CLOSED", "the output stream takes nothing more");

function codeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
