/** What the adapter needs of a Kafka client: of kafkajs, or of \@platformatic/kafka. */

import type { WireRecord } from "./carry.ts";
import type { Fault } from "./failures.ts";

export interface PartitionBatch {
  readonly partition: number;
  readonly records: readonly WireRecord[];
}

/** Offset of a batch's first record (the others follow), or why it was not acknowledged. */
export type BatchOutcome = { readonly baseOffset: bigint } | { readonly fault: Fault };

export interface TopicDescription {
  readonly leaders: readonly number[];
}

export interface Session {
  /** Resolves when the cluster answers, else rejects with a {@link FaultError}. */
  check(): Promise<void>;
  /** Asks the cluster anew. Rejects with a {@link FaultError}. */
  describe(topic: string): Promise<TopicDescription>;
  /**
   * Sends one produce request for partitions of one leader (-1: unknown), acknowledged by all
   * in-sync replicas, without retries. Resolves to one outcome for each batch. Never rejects.
   */
  send(leader: number, topic: string, batches: readonly PartitionBatch[]): Promise<BatchOutcome[]>;
  /** Closes the connections, by force if needed. Never rejects. */
  close(): Promise<void>;
}

export interface Driver {
  /** Rejects with a {@link FaultError}. The signal ends the attempt, where that is possible. */
  open(signal: AbortSignal): Promise<Session>;
  /** False with a client that was passed in, which follows its own settings. */
  readonly endsAttempts: boolean;
}

export class FaultError extends Error {
  readonly fault: Fault;

  constructor(fault: Fault, options?: { readonly cause: unknown }) {
    super(fault.text, options);
    this.fault = fault;
  }
}

export function sameForAll(batches: readonly PartitionBatch[], fault: Fault): BatchOutcome[] {
  return batches.map(() => ({ fault }));
}

/** `code` and text of the first error below this one (causes, parts) that a test accepts. */
export function findError<Found>(
  error: unknown,
  accept: (error: ErrorLike) => Found | undefined,
  depth = 0,
): Found | undefined {
  if (typeof error !== "object" || error === null || depth > 8) return undefined;
  const found = accept(error);
  if (found !== undefined) return found;
  const { cause, errors } = error as ErrorLike;
  for (const part of [cause, ...(Array.isArray(errors) ? (errors as unknown[]) : [])]) {
    const inner = findError(part, accept, depth + 1);
    if (inner !== undefined) return inner;
  }
  return undefined;
}

export interface ErrorLike {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly code?: unknown;
  readonly cause?: unknown;
  readonly errors?: unknown;
  readonly type?: unknown;
  readonly apiCode?: unknown;
  readonly apiId?: unknown;
}

export function systemCode(error: unknown): { readonly code: string; readonly text: string } | undefined {
  return findError(error, ({ code, message }) =>
    typeof code === "string" && /^[A-Z][A-Z0-9_]+$/.test(code) && !code.startsWith("PLT_KFK")
      ? { code, text: String(message) }
      : undefined,
  );
}

/** The outermost message. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
