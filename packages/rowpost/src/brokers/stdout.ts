/**
 * Prints each message as one line of JSON: to see what a relay sends, and to feed any program by a
 * pipe (`rowpost relay --broker stdout: | …`).
 */
import type { Writable } from "node:stream";
import { onAbort } from "../runtime/abort.ts";
import { BrokerError } from "../runtime/errors.ts";
import type { Broker, OutgoingMessage, PublishFailed, PublishResult } from "./broker.ts";
import { ABORTED } from "./publishing/results.ts";

/** Options of {@link stdout}. */
export interface StdoutBrokerOptions {
  /**
   * Where lines go. Default: this process's standard output. Handed in, so never closed by the
   * broker.
   */
  readonly stream?: Writable | undefined;
}

/** The line of one message; members that are undefined are left out. */
export interface StdoutLine {
  /** The receipt: the number of the line since the start, from 1. */
  readonly messageId: string;
  readonly topic: string;
  readonly type: string;
  readonly key: string;
  readonly orderingKey?: string | undefined;
  readonly attempt: number;
  readonly contentType: string;
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The body's text as it is (JSON is not parsed, so it stands here as a string); base64 when it is
   * binary.
   */
  readonly body: string;
  readonly bodyEncoding?: "base64" | undefined;
}

/**
 * Lines are written together up to this size, then the stream is waited for. 64 KiB is what a pipe
 * on Linux holds.
 */
const CHUNK_BYTES = 65_536;

/**
 * Makes a broker that prints. A message is `sent` once the stream has taken its line (the operating
 * system has it); a reader that is slow slows the relay down, since each chunk waits until the
 * stream is drained. A reader that went away (EPIPE), a full disk or a destroyed stream is a
 * connection failure: nothing is counted, and the relay waits for it to come back.
 *
 * It delays nothing (`features.delay` is false, the relay does it): a line that this process kept
 * back would be lost with it.
 */
export function stdout(options: StdoutBrokerOptions = {}): Broker {
  const { stream = process.stdout } = options;
  let closed = false;
  let lineCount = 0;
  // Without a listener, an EPIPE would end the process. What failed is told by the callback of the
  // write.
  const ignoreError = (): void => undefined;
  stream.on("error", ignoreError);

  function unusable(): PublishFailed | undefined {
    if (closed) return connectionFailure("CLOSED", "the stdout broker was closed");
    if (!stream.writable) return connectionFailure("STREAM_CLOSED", "the output stream takes nothing more");
    return undefined;
  }

  /**
   * Writes the lines and waits until the stream has taken them, or for the deadline. Undefined:
   * taken.
   */
  function write(lines: string, signal: AbortSignal): Promise<PublishFailed | undefined> {
    return new Promise((resolve) => {
      const reason = "the output stream did not take the line before the deadline";
      const stopFollowing = onAbort(signal, () =>
        resolve({ status: "failed", scope: "unknown", retriable: true, code: "TIMEOUT", reason }),
      );
      stream.write(lines, (error) => {
        stopFollowing();
        resolve(error ? connectionFailure(errorCode(error), error.message) : undefined);
      });
    });
  }

  async function publish(batch: readonly OutgoingMessage[], signal: AbortSignal): Promise<PublishResult[]> {
    const results: PublishResult[] = [];
    while (results.length < batch.length && !signal.aborted) {
      const before = unusable();
      if (before !== undefined) return stopAt(batch, results, before);
      const chunk = nextChunk(batch, results.length, lineCount);
      lineCount += chunk.receipts.length;
      const failure = await write(chunk.text, signal);
      if (failure !== undefined) {
        for (const _receipt of chunk.receipts) results.push(failure);
        return stopAt(batch, results, failure);
      }
      for (const messageId of chunk.receipts) results.push({ status: "sent", messageId });
    }
    while (results.length < batch.length) results.push(ABORTED);
    return results;
  }

  return {
    name: "stdout",
    features: { ordering: "key", reportsUnknownTopic: false, maxBodyBytes: undefined },
    publish: (batch, { signal }) => publish(batch, signal),
    async check() {
      const failure = unusable();
      if (failure === undefined) return;
      throw new BrokerError(
        "BROKER_UNREACHABLE",
        `cannot print messages: ${failure.reason}; is the reader of the pipe still running?`,
      );
    },
    async close() {
      if (!closed) stream.off("error", ignoreError);
      closed = true;
    },
  };
}

interface Chunk {
  readonly text: string;
  readonly receipts: readonly string[];
}

/**
 * The next lines of the batch: at most some 64 KiB (or one line), and each ordering key once,
 * because a message may only be handed over when the one before it of its key has been taken.
 */
function nextChunk(batch: readonly OutgoingMessage[], from: number, lineCount: number): Chunk {
  const keys = new Set<string>();
  const receipts: string[] = [];
  let text = "";
  for (let index = from; index < batch.length && text.length < CHUNK_BYTES; index += 1) {
    const message = batch[index];
    if (message === undefined) break;
    if (message.orderingKey !== undefined) {
      if (keys.has(message.orderingKey)) break;
      keys.add(message.orderingKey);
    }
    const messageId = String(lineCount + receipts.length + 1);
    receipts.push(messageId);
    text += `${JSON.stringify(lineOf(message, messageId))}\n`;
  }
  return { text, receipts };
}

function lineOf(message: OutgoingMessage, messageId: string): StdoutLine {
  const { topic, type, key, orderingKey, attempt, contentType, headers, body } = message;
  const isText = typeof body === "string";
  return {
    messageId,
    topic,
    type,
    key,
    orderingKey,
    attempt,
    contentType,
    headers,
    body: isText ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("base64"),
    bodyEncoding: isText ? undefined : "base64",
  };
}

/** Results of the messages that come after a failure: nothing of them was written. */
function stopAt(batch: readonly OutgoingMessage[], results: PublishResult[], failure: PublishFailed): PublishResult[] {
  const failedKeys = new Set<string>();
  for (const [index, { orderingKey }] of batch.entries()) {
    const result = results[index];
    if (result === undefined) {
      const behind = orderingKey !== undefined && failedKeys.has(orderingKey);
      // After a deadline the rest was simply not begun; after a broken stream it is the stream that
      // is the trouble.
      const rest = failure.scope === "unknown" ? undefined : failure;
      results.push(
        behind || rest === undefined
          ? { status: "notStarted", reason: "an earlier message could not be printed" }
          : rest,
      );
    }
    if (results[index]?.status !== "sent" && orderingKey !== undefined) failedKeys.add(orderingKey);
  }
  return results;
}

function connectionFailure(code: string, reason: string): PublishFailed {
  return { status: "failed", scope: "connection", retriable: true, code, reason };
}

function errorCode(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
