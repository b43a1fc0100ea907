import { createHash } from "node:crypto";
import { checkText } from "../../message/check-text.ts";
import { BASE64_MARK, JSON_CONTENT_TYPE } from "../../message/content-type.ts";
import { DEFAULT_LIMITS } from "../../message/message.ts";
import { InvalidMessageError } from "../../runtime/errors.ts";
import type { Executor } from "../../transactions/executor.ts";
import { checkTopic } from "../topics/names.ts";
import type { Appender } from "./append.ts";
import type { Item } from "./encode.ts";
import type { RelayedStore } from "./relayed-store.ts";

/** A message from a relay, such as an `OutgoingMessage`. */
export interface RelayedMessage {
  /** Id of its row at the source. */
  readonly id: string;
  /** Message type. */
  readonly type: string;
  /** Message key. */
  readonly key: string;
  /** Topic to append to. */
  readonly topic: string;
  /** Text or bytes. */
  readonly body: string | Uint8Array;
  /** Media type of the body. */
  readonly contentType: string;
  /** All headers. */
  readonly headers: Readonly<Record<string, string>>;
  /** Chooses the partition. */
  readonly orderingKey: string | undefined;
  /** Sent before and to be appended once more. */
  readonly resend?: boolean | undefined;
  /** Attempt number of the row. */
  readonly attempt: number;
}

/** Appends messages in an open transaction; resolves to their ids. */
export type AppendIn = (tx: unknown, messages: readonly RelayedMessage[]) => Promise<string[]>;

/** The part of a queue that `queueBroker` uses. */
export interface RelayedAppends {
  /** The queue's database object; a relay on the same one settles in the append's transaction. */
  readonly database: object;
  /** Resolves when the queue is usable. */
  ready(): Promise<void>;
  /**
   * Appends in a transaction of its own. A message appended before is recognized by its row and
   * keeps its id.
   */
  append(messages: readonly RelayedMessage[]): Promise<string[]>;
  /**
   * Appends in the caller's transaction: `transact` begins it, calls its argument in it, and
   * commits. Called again when a month's table was missing.
   */
  appendWithin<T>(messages: readonly RelayedMessage[], transact: (append: AppendIn) => Promise<T>): Promise<T>;
}

/** Longer than any automatic retry (7 days by default). */
const SOURCES_KEPT_MS = 30 * 86_400_000;
const FORGET_EVERY_MS = 600_000;
const FORGET_AT_ONCE = 1_000;

export interface RelayedOptions {
  readonly database: object;
  readonly store: RelayedStore;
  readonly appender: Appender;
  readonly producerGroup: string | undefined;
  readonly monotonicMs: () => number;
}

export function createRelayedAppends(options: RelayedOptions): RelayedAppends {
  const { database, store, appender, producerGroup, monotonicMs } = options;
  let forgetAtMs = monotonicMs() + FORGET_EVERY_MS;
  const topicsOf = (messages: readonly RelayedMessage[]): ReadonlySet<string> =>
    new Set(messages.map(({ topic }) => checkTopic(topic)).sort());

  /** A failure only delays the deletion. */
  async function forgetOld(): Promise<void> {
    if (monotonicMs() < forgetAtMs) return;
    forgetAtMs = monotonicMs() + FORGET_EVERY_MS;
    const request = { olderThanMs: SOURCES_KEPT_MS, limit: FORGET_AT_ONCE };
    while ((await store.forgetSources(request).catch(() => 0)) === FORGET_AT_ONCE);
  }

  return {
    database,
    ready: () => store.ready(),
    async append(messages) {
      const items = messages.map((message) => itemOf(message, sourceIdOf(message, producerGroup)));
      const ids = await appender.mending(topicsOf(messages), () =>
        store.transaction((tx) => appender.appendIn(tx, items, { own: true })),
      );
      void forgetOld();
      return ids;
    },
    async appendWithin(messages, transact) {
      const items = new Map(messages.map((message) => [message, itemOf(message, null)]));
      const append: AppendIn = (tx, chosen) =>
        appender.appendIn(
          tx as Executor,
          chosen.map((message) => items.get(message) ?? itemOf(message, null)),
        );
      return await appender.mending(topicsOf(messages), () => transact(append));
    },
  };
}

/**
 * The same for each attempt at one row. A resend is meant to be stored twice, so each of its
 * attempts has its own id.
 */
function sourceIdOf(message: RelayedMessage, producerGroup: string | undefined): string {
  const { id, type, key, resend, attempt } = message;
  const identity = JSON.stringify([producerGroup ?? "", type, key, id, resend === true ? attempt : 0]);
  return createHash("sha256").update(identity).digest("base64url").slice(0, 32);
}

/** Reports values that the table cannot hold. */
function itemOf(message: RelayedMessage, sourceId: string | null): Item {
  const { type, key, body, contentType, headers, orderingKey } = message;
  const name = `message ${type}:${key}`;
  const isText = typeof body === "string";
  const stored = isText ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("base64");
  const storedType = isText ? contentType : `${contentType}${BASE64_MARK}`;
  if (stored.length * 3 > DEFAULT_LIMITS.bodyBytes && Buffer.byteLength(stored) > DEFAULT_LIMITS.bodyBytes) {
    throw new InvalidMessageError(
      `${name}: the body has ${Buffer.byteLength(stored)} bytes as stored; at most ${DEFAULT_LIMITS.bodyBytes} fit`,
    );
  }
  return {
    topic: message.topic,
    message: {
      key: checkText(name, "key", key, DEFAULT_LIMITS.key),
      type: checkText(name, "type", type, DEFAULT_LIMITS.type),
      body: stored,
      contentType: storedType === JSON_CONTENT_TYPE ? null : checkText(name, "contentType", storedType, 64),
      headers: headersText(name, headers),
      orderingKey:
        orderingKey === undefined ? null : checkText(name, "orderingKey", orderingKey, DEFAULT_LIMITS.orderingKey),
      delayMs: null,
      deliverAtMs: null,
      sourceId,
    },
  };
}

/** Limit of a 65,535-byte column on MySQL. */
const HEADERS_BYTES = 65_535;

function headersText(name: string, headers: RelayedMessage["headers"]): string | null {
  const text = JSON.stringify(headers);
  if (Buffer.byteLength(text) > HEADERS_BYTES) {
    throw new InvalidMessageError(`${name}: the headers have more than ${HEADERS_BYTES} bytes as JSON`);
  }
  return text === "{}" ? null : text;
}
