/** A connection in use. Each message carries a reply address by which its receipt finds it. */

import { randomBytes } from "node:crypto";
import type { PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";
import { asHeaders } from "./carry.ts";
import type { NatsConnection, NatsMessage, NatsStatus } from "./client.ts";
import { describeConnectError, destinationFailure, failureOfError, type JetStreamError } from "./failures.ts";

export type Outcome =
  | { readonly kind: "stored"; readonly stream: string; readonly sequence: number }
  | { readonly kind: "failed"; readonly failure: PublishFailed }
  /** No subscriber: no stream takes the subject, or the stream has no leader now. */
  | { readonly kind: "nobody" };

export type ApiAnswer =
  | { readonly kind: "answer"; readonly body: unknown }
  | { readonly kind: "nobody" }
  | { readonly kind: "silence" }
  | { readonly kind: "denied" };

export interface Handover {
  readonly subject: string;
  readonly headers: Uint8Array;
  readonly body: Uint8Array;
  readonly settle: (outcome: Outcome) => void;
}

export interface Link {
  isUsable(): boolean;
  /** Over for good, even if the connection is not. Another link replaces it. */
  readonly isOver: boolean;
  /** Whether the server still answers: a message waited in vain. Cleared by {@link ping}. */
  readonly isDoubtful: boolean;
  maxPayload(): number;
  /** Calls `settle` once, later. Returns a function that forgets the message. */
  send(handover: Handover): () => void;
  /** Calls JetStream's API. Never rejects. */
  ask(subject: string, request: object, timeoutMs: number): Promise<ApiAnswer>;
  /** False: no sign of life within the time. */
  ping(timeoutMs: number): Promise<boolean>;
  /** Stops listening and settles messages in flight as unknown. The connection stays open. */
  release(code: string, reason: string): void;
}

export interface LinkOptions {
  readonly connection: NatsConnection;
  readonly inboxPrefix: string;
  readonly ackTimeoutMs: number;
}

interface Pending {
  readonly subject: string;
  readonly sentAt: number;
  readonly settle: (outcome: Outcome) => void;
  answered: string | undefined;
}

/** The server's default. */
const DEFAULT_MAX_PAYLOAD = 1_048_576;

/** Resolves to a failure if the subscription to receipts is refused or not answered in time. */
export async function openLink(options: LinkOptions, timeoutMs: number): Promise<Link | PublishFailed> {
  let created: ReturnType<typeof createLink>;
  try {
    created = createLink(options);
  } catch (error) {
    return failed("connection", "CONNECTION_LOST", describeConnectError(error).reason);
  }
  const { link, deniedInbox } = created;
  // A refused subscription is reported before the answer to the ping; then no receipt could arrive.
  const answers = await link.ping(timeoutMs);
  const denied = deniedInbox();
  if (answers && denied === undefined) return link;
  link.release("CONNECTION_LOST", "the connection cannot be used");
  if (denied === undefined) return failed("connection", "CONNECTION_LOST", "the NATS server does not answer");
  const advice = "allow the user to subscribe to it, or set inboxPrefix to what the user may subscribe to";
  return failed("connection", "PERMISSION_DENIED", `receipts cannot be received: ${denied} (${advice})`);
}

function createLink(options: LinkOptions): { readonly link: Link; readonly deniedInbox: () => string | undefined } {
  const { connection, ackTimeoutMs } = options;
  const inbox = `${options.inboxPrefix}.${randomBytes(12).toString("hex")}.`;
  const pending = new Map<string, Pending>();
  const asked = new Map<string, { readonly subject: string; readonly settle: (answer: ApiAnswer) => void }>();
  let counter = 0;
  let received = 0;
  let isAway = false;
  let isOver = false;
  let isDoubtful = false;
  let denied: string | undefined;
  let ackTimer: NodeJS.Timeout | undefined;
  const pings = new Set<(isAlive: boolean) => void>();

  const nextToken = (): string => {
    counter += 1;
    return counter.toString(36);
  };

  function settle(token: string, outcome: Outcome): void {
    const found = pending.get(token);
    if (found === undefined) return;
    pending.delete(token);
    found.settle(outcome);
  }

  function settleAll(code: string, reason: string): void {
    for (const token of [...pending.keys()])
      settle(token, { kind: "failed", failure: failed("unknown", code, reason) });
    for (const [token, { settle: answer }] of asked) {
      asked.delete(token);
      answer({ kind: "silence" });
    }
    for (const end of pings) end(false);
  }

  /** An exception would stop the client's reading, including the user's own subscriptions. */
  function onMessage(error: Error | null, message: NatsMessage): void {
    received += 1;
    try {
      if (error === null) receive(message);
      else onInboxDenied(error);
    } catch {
      // An answer that cannot be parsed is no receipt.
    }
  }

  function onInboxDenied({ message }: Error): void {
    denied = message;
    release("PERMISSION_DENIED", `receipts cannot be received any more: ${message}`);
  }

  function receive(message: NatsMessage): void {
    const token = message.subject.slice(inbox.length);
    // Not final: another program may listen to the subject too, and JetStream's answer may still
    // come.
    const found = pending.get(token);
    if (found !== undefined) found.answered = "an answer came from a program that is not JetStream";
    const isNobody = message.data.length === 0 && message.headers?.code === 503;
    const question = asked.get(token);
    if (question !== undefined) {
      asked.delete(token);
      question.settle(isNobody ? { kind: "nobody" } : { kind: "answer", body: parsed(message.data) });
      return;
    }
    const outcome: Outcome | undefined = isNobody ? { kind: "nobody" } : outcomeOf(parsed(message.data));
    if (outcome !== undefined) settle(token, outcome);
  }

  /**
   * The oldest message decides, because all have the same timeout and stay in the order of sending.
   */
  function watchAcks(): void {
    const oldest = pending.values().next().value;
    if (ackTimer !== undefined || oldest === undefined) return;
    ackTimer = setTimeout(expireAcks, Math.max(1, oldest.sentAt + ackTimeoutMs - performance.now()));
  }

  function expireAcks(): void {
    ackTimer = undefined;
    const dueBefore = performance.now() - ackTimeoutMs;
    for (const [token, { sentAt, answered }] of pending) {
      if (sentAt > dueBefore) break;
      isDoubtful = true;
      const why = answered ?? "a stream that takes the subject, and is not made with no_ack, would send one";
      const failure = failed("unknown", "ACK_TIMEOUT", `no receipt within ${ackTimeoutMs} ms (${why})`);
      settle(token, { kind: "failed", failure });
    }
    watchAcks();
  }

  function release(code: string, reason: string): void {
    if (isOver) return;
    isOver = true;
    clearTimeout(ackTimer);
    statuses.stop?.();
    if (!connection.isClosed()) subscription.unsubscribe();
    settleAll(code, reason);
  }

  /** The server reports only the subject, so the first message in flight on it is taken. */
  function onDenied(subject: string, reason: string): void {
    for (const [token, { subject: ours }] of pending) {
      if (ours !== subject) continue;
      const advice = "allow the user to publish to the subject";
      const failure = destinationFailure("PERMISSION_DENIED", `${reason} (${advice})`);
      settle(token, { kind: "failed", failure });
      return;
    }
    for (const [token, question] of asked) {
      if (question.subject !== subject) continue;
      asked.delete(token);
      question.settle({ kind: "denied" });
      return;
    }
  }

  function onStatus({ type, error }: NatsStatus): void {
    if (type === "error" && error instanceof Error && error.name === "PermissionViolationError") {
      const { operation, subject } = error as Error & { readonly operation?: unknown; readonly subject?: unknown };
      if (operation === "publish" && typeof subject === "string") onDenied(subject, error.message);
    } else if (type === "disconnect") {
      isAway = true;
      settleAll("CONNECTION_LOST", "the connection broke before the receipt came");
    } else if (type === "reconnect") {
      isAway = false;
      isDoubtful = true;
    }
  }

  function ping(timeoutMs: number): Promise<boolean> {
    const before = received;
    return new Promise((resolve) => {
      const end = (isAlive: boolean): void => {
        clearTimeout(timer);
        pings.delete(end);
        if (isAlive) isDoubtful = false;
        resolve(isAlive);
      };
      // A receipt is a sign of life too, if the answer to the ping queues behind many others.
      const timer = setTimeout(() => end(received !== before), timeoutMs);
      pings.add(end);
      connection.flush().then(
        () => end(true),
        () => end(false),
      );
    });
  }

  const statuses = connection.status();
  followStatuses(statuses, onStatus);
  const subscription = connection.subscribe(`${inbox}*`, { callback: onMessage });
  const ended = (error?: Error): void => {
    const why = error === undefined ? "the connection broke" : `the connection broke: ${error.message}`;
    release("CONNECTION_LOST", `${why} before the receipt came`);
  };
  connection.closed().then(ended, ended);

  const link: Link = {
    isUsable: () => !isOver && !isAway && !connection.isClosed(),
    get isOver() {
      return isOver;
    },
    get isDoubtful() {
      return isDoubtful;
    },
    maxPayload: () => connection.info?.max_payload ?? DEFAULT_MAX_PAYLOAD,
    send({ subject, headers, body, settle: done }) {
      const token = nextToken();
      pending.set(token, { subject, sentAt: performance.now(), settle: done, answered: undefined });
      try {
        connection.publish(subject, body, { reply: inbox + token, headers: asHeaders(headers) });
      } catch (error) {
        // Thrown before anything is written: the connection is closed or draining.
        pending.delete(token);
        const reason = error instanceof Error ? error.message : String(error);
        done({ kind: "failed", failure: failed("connection", "CONNECTION_LOST", reason) });
      }
      watchAcks();
      return () => {
        if (pending.delete(token)) isDoubtful = true;
      };
    },
    ask(subject, request, timeoutMs) {
      const token = nextToken();
      return new Promise((resolve) => {
        const timer = setTimeout(() => {
          asked.delete(token);
          resolve({ kind: "silence" });
        }, timeoutMs);
        const done = (answer: ApiAnswer): void => {
          clearTimeout(timer);
          resolve(answer);
        };
        asked.set(token, { subject, settle: done });
        try {
          connection.publish(subject, Buffer.from(JSON.stringify(request)), { reply: inbox + token });
        } catch {
          asked.delete(token);
          done({ kind: "silence" });
        }
      });
    },
    ping,
    release,
  };
  return { link, deniedInbox: () => denied };
}

function followStatuses(statuses: AsyncIterable<NatsStatus>, onStatus: (status: NatsStatus) => void): void {
  const follow = async (): Promise<void> => {
    for await (const status of statuses) onStatus(status);
  };
  // Ends with the connection, whose end is handled elsewhere.
  follow().catch(() => undefined);
}

interface PubAck {
  readonly error?: JetStreamError | null | undefined;
  readonly stream?: unknown;
  readonly seq?: unknown;
}

function outcomeOf(answer: unknown): Outcome | undefined {
  if (typeof answer !== "object" || answer === null) return undefined;
  const { error, stream, seq } = answer as PubAck;
  // JSON-RPC uses null for no error.
  if (typeof error === "object" && error !== null) return { kind: "failed", failure: failureOfError(error) };
  const isReceipt = typeof stream === "string" && stream !== "" && typeof seq === "number" && seq > 0;
  return isReceipt ? { kind: "stored", stream, sequence: seq } : undefined;
}

function parsed(data: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString());
  } catch {
    return undefined;
  }
}
