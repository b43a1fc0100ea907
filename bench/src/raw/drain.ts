/**
 * The raw limit of a drain: the relay's own scan, claim and settle statements through the bare
 * driver, one after another, with parameters prepared before. The ratio shows what the relay adds
 * (decoding, window, grouping, leases, publishing).
 */
import type { BareAnswer, BareConnection, BareStatement, BenchDatabase } from "../servers/server.ts";
import type { Fence, RawStatements, RowToken, SentOutcome } from "./statements.ts";

interface RawBatch {
  readonly scan: BareStatement;
  /** Marks 发送中, or lists the ids in flight if the mark is off. */
  readonly claim: BareStatement;
  readonly settle: BareStatement;
  readonly size: number;
}

export interface RawDrain {
  readonly messages: number;
  readonly batches: readonly RawBatch[];
  /** Mean time of each statement in ms, filled while running. */
  readonly spentMs: { scan: number; claim: number; settle: number };
  /** Returns the shards, so that the next relay need not wait for a lease to end. */
  release(): Promise<void>;
}

export interface RawDrainRequest {
  readonly connection: BareConnection;
  readonly statements: RawStatements;
  readonly batchSize: number;
  readonly sendingMark: "on" | "off";
  /** Default `keep`. */
  readonly onSent?: "keep" | "delete" | undefined;
}

const OWNER = "bench-raw";
/** Longer than any raw run. */
const LEASE_MS = 3_600_000;

/** Takes all shards, reads the waiting rows, and prepares the statements of every batch. */
export async function prepareRawDrain(request: RawDrainRequest): Promise<RawDrain> {
  const { connection, statements, batchSize } = request;
  const fence = await takeShards(connection, statements);
  const waiting = await connection.run(
    statements.relay.scan({
      shards: undefined,
      afterId: "0",
      bodyLimit: Number.MAX_SAFE_INTEGER,
      immediateLimit: 10_000_000,
      dueLimit: 1,
    }),
  );
  const tokens = waiting.rows.map(tokenOf);
  const batches: RawBatch[] = [];
  for (let start = 0; start < tokens.length; start += batchSize) {
    batches.push(batchOf(request, fence, tokens[start - 1]?.id ?? "0", tokens.slice(start, start + batchSize)));
  }
  const shards = fence.epochs.flatMap((epoch, shard) => (epoch === undefined ? [] : [{ shard, epoch }]));
  return {
    messages: tokens.length,
    batches,
    spentMs: { scan: 0, claim: 0, settle: 0 },
    async release() {
      await connection.run(statements.leases.release({ owner: OWNER, shards }));
    },
  };
}

async function takeShards(connection: BareConnection, statements: RawStatements): Promise<Fence> {
  await connection.run(statements.leases.ensureShards());
  const before = await connection.run(statements.leases.readLeases());
  const observed = before.rows.map((row) => ({
    shard: Number(row["shard"]),
    owner: typeof row["owner"] === "string" ? row["owner"] : undefined,
    epoch: String(row["epoch"]),
    leaseUntil: String(row["lease_until"]),
    leaseMs: Number(row["lease_ms"]),
  }));
  const taken = await connection.run(statements.leases.take({ owner: OWNER, leaseMs: LEASE_MS, observed }));
  if (taken.affected !== observed.length) {
    throw new Error(
      `the raw loop took ${taken.affected} of ${observed.length} shards: another relay works on this database`,
    );
  }
  const epochs: (string | undefined)[] = [];
  for (const { shard, epoch } of observed) epochs[shard] = nextVersion(epoch);
  return { owner: OWNER, epochs };
}

/** A benchmark's versions are small. */
function nextVersion(version: string): string {
  return String(Number(version) + 1);
}

function tokenOf(row: Readonly<Record<string, unknown>>): RowToken {
  return {
    id: String(row["id"]),
    shard: Number(row["shard"]),
    deliveryCount: Number(row["delivery_count"]),
    lockVersion: String(row["lock_version"]),
    identityHash: String(row["identity_hash"]),
  };
}

function batchOf(request: RawDrainRequest, fence: Fence, afterId: string, rows: readonly RowToken[]): RawBatch {
  const { relay } = request.statements;
  const marked = request.sendingMark === "on";
  const scan = relay.scan({
    shards: undefined,
    afterId,
    bodyLimit: Number.MAX_SAFE_INTEGER,
    immediateLimit: request.batchSize,
    dueLimit: Math.ceil(request.batchSize / 4),
  });
  const claimed = marked
    ? rows.map((row) => ({ ...row, deliveryCount: row.deliveryCount + 1, lockVersion: nextVersion(row.lockVersion) }))
    : rows;
  const outcomes = claimed.map(
    (row, index): SentOutcome => ({
      ...row,
      toState: "sent",
      messageId: receiptOf(index),
      retryDelta: 0,
      deliveryDelta: 0,
      nextRetryInMs: null,
      failReason: null,
    }),
  );
  const from = marked ? "sending" : "pending";
  return {
    scan,
    claim: marked ? relay.claim({ fence, rows }) : relay.listInFlight({ fence, idsByShard: byShard(rows) }),
    settle:
      request.onSent === "delete"
        ? relay.deleteSent({ fence, rows: claimed, from })
        : relay.settleSent({ fence, outcomes, elapsedMs: 5, from }),
    size: rows.length,
  };
}

function byShard(rows: readonly RowToken[]): { shard: number; ids: string[] }[] {
  const lists = new Map<number, string[]>();
  for (const { shard, id } of rows) {
    const list = lists.get(shard);
    if (list === undefined) lists.set(shard, [id]);
    else list.push(id);
  }
  return [...lists].map(([shard, ids]) => ({ shard, ids }));
}

/** 32 characters, as long as RocketMQ's message ids. */
export function receiptOf(number: number): string {
  return number.toString(16).toUpperCase().padStart(32, "0");
}

/** One connection, one statement at a time. */
export async function runRawDrain(connection: BareConnection, drain: RawDrain): Promise<void> {
  const { spentMs } = drain;
  for (const batch of drain.batches) {
    const start = performance.now();
    const { rows } = await connection.run(batch.scan);
    const scanned = performance.now();
    await connection.run(batch.claim);
    const claimed = performance.now();
    const { affected } = await connection.run(batch.settle);
    checkBatch(batch, rows.length, affected);
    spentMs.scan += scanned - start;
    spentMs.claim += claimed - scanned;
    spentMs.settle += performance.now() - claimed;
  }
}

/**
 * Scan and claim on the first connection, settles on the second, at most three batches apart: the
 * gain of overlapping alone.
 */
export async function runOverlappedRawDrain(
  [reader, settler]: readonly [BareConnection, BareConnection],
  drain: RawDrain,
): Promise<void> {
  const settles: Promise<void>[] = [];
  let last: Promise<void> = Promise.resolve();
  for (const [index, batch] of drain.batches.entries()) {
    const { rows } = await reader.run(batch.scan);
    await runAgain(reader, batch.claim);
    last = last.then(async () => checkBatch(batch, rows.length, (await runAgain(settler, batch.settle)).affected));
    // Awaited below; if the reader fails first, its error is reported.
    last.catch(() => undefined);
    settles.push(last);
    if (index >= 3) await settles[index - 3];
  }
  await last;
}

/**
 * Two connections on the same lease rows can deadlock. The victim changed nothing and is run again,
 * as the relay does.
 */
async function runAgain(connection: BareConnection, statement: BareStatement): Promise<BareAnswer> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await connection.run(statement);
    } catch (error) {
      const code: unknown = error instanceof Error ? Reflect.get(error, "code") : undefined;
      if (tries === 10 || (code !== "ER_LOCK_DEADLOCK" && code !== "40P01")) throw error;
    }
  }
}

/** The statements are for rows in a fixed order; a loop that did less work has no valid rate. */
function checkBatch(batch: RawBatch, scanned: number, settled: number): void {
  if (scanned < batch.size || settled < batch.size) {
    throw new Error(`a raw batch of ${batch.size} scanned ${scanned} and settled ${settled} rows`);
  }
}

/** Throws if any row is waiting or half done. */
export async function checkDrained(database: BenchDatabase): Promise<void> {
  const left = await database.number(
    "SELECT COUNT(*) FROM local_message WHERE state = 1 OR (state = 0 AND next_retry_at IS NULL)",
  );
  if (left !== 0) throw new Error(`${left} messages were left behind`);
}
