/** Redis Streams: a consumer group, read on our own connections. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { duplicatesOf, type RedisClient } from "../../brokers/redis/client.ts";
import { onAbort } from "../../runtime/abort.ts";
import { closeQuietly } from "../../runtime/deadline.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { wholeNumber } from "../../runtime/whole-number.ts";
import type { Transaction } from "../../transactions/executor.ts";
import { type Consumption, consumptionOf } from "../consumption.ts";
import { type ConsumeOptions, type OwnKinds, type Park, workSettings } from "../options.ts";
import { type Opened, type Reopening, reopening } from "../reopening.ts";
import { createUnderway } from "../underway.ts";
import { createWork, type Verdict } from "../work.ts";
import { type Connection, ensureGroup, openConnection } from "./connection.ts";
import { createEntries, type Lent } from "./entries.ts";
import { type RedisDelivered, redisMessage } from "./message.ts";
import { readStream } from "./reading.ts";

/** Options of {@link consumeRedis}. */
export interface RedisConsumeOptions<Tx = Transaction> extends ConsumeOptions<RedisDelivered, Tx> {
  /**
   * A `Redis` or `Cluster` of ioredis or iovalkey, also with sentinels. The consumer connects with
   * its `duplicate()`; the client itself is not used and not closed.
   */
  readonly client: RedisClient;
  /** Keys of the streams, after the client's `keyPrefix`. Missing streams are created. */
  readonly streams: readonly string[];
  /** Consumer group; created if missing. */
  readonly group: string;
  /**
   * Start of a group that is created at the start. Default true: the first entry. A group deleted
   * while the consumer runs is always recreated at the first entry, so that nothing is left out;
   * the inbox recognizes duplicates.
   */
  readonly fromBeginning?: boolean | undefined;
  /**
   * Entries in memory, including those being handled, shared by the streams. Default: four times
   * `concurrency`, so that one slow key leaves room for others.
   */
  readonly prefetch?: number | undefined;
  /**
   * Idle time in ms after which an entry of another member is claimed, for example when its process
   * died. Entries being handled are renewed. Use the same for all members. Default 30,000, at least
   * 100.
   */
  readonly claimAfterMs?: number | undefined;
  /** Delete each handled entry, for streams that no other group reads. Default false. */
  readonly deleteHandled?: boolean | undefined;
  /** Time for the connections and the first answers of the server, in ms. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * Redis has no dead letters. `redeliver`, the default: again after `retry.maxMs`, to any member.
   */
  readonly unhandled?: "redeliver" | Park<RedisDelivered> | undefined;
}

const KINDS: OwnKinds<RedisConsumeOptions> = {
  client: ["object", "function"],
  streams: "array",
  group: "string",
  fromBeginning: "boolean",
  prefetch: "number",
  claimAfterMs: "number",
  deleteHandled: "boolean",
  connectTimeoutMs: "number",
};

interface Link extends Opened {
  readonly commands: Connection;
  /** Resolves to whether every read has returned. */
  readonly read: Promise<boolean>;
  disconnect(): void;
}

/**
 * Handles the entries of streams, each once, and acknowledges each after its commit. Resolves when
 * it reads. Needs Redis 6.2. Throws `ConfigurationError`, and the server's error of the first
 * attempt. A connection lost later is reopened.
 */
export async function consumeRedis<Tx = Transaction>(options: RedisConsumeOptions<Tx>): Promise<Consumption> {
  const settings = workSettings("consumeRedis", options, KINDS, { noDeadLetters: true });
  const { group, streams, deleteHandled = false, fromBeginning = true } = options;
  if (typeof group !== "string" || group === "" || streams === undefined || streams.length === 0) {
    throw new ConfigurationError('consumeRedis takes { client, streams: ["orders"], group: "points" }');
  }
  const make = duplicatesOf(options.client, "consumeRedis");
  const claimAfterMs = wholeNumber("consumeRedis: claimAfterMs", options.claimAfterMs ?? 30_000, 100);
  const { clock, logger, openWithinMs, pauseMs, prefetch } = settings;
  const member = `rowpost-${hostname()}-${process.pid}-${randomUUID()}`;
  const work = createWork(settings);
  let links: Reopening<Link> | undefined;
  let first: Connection | undefined;
  const entries = createEntries({
    group,
    member,
    clock,
    claimAfterMs,
    deleteHandled,
    connection: () => links?.current().commands ?? (first as Connection),
  });

  async function tell(lent: Lent, verdict: Verdict): Promise<void> {
    if (verdict === "handled") await entries.acknowledge(lent);
    else await entries.giveBack(lent, verdict === "stopped" ? 0 : pauseMs);
  }

  function take(raw: RedisDelivered): Promise<unknown> | undefined {
    const lent = entries.lend(raw);
    if (lent === undefined) return undefined;
    return work.handle({
      raw,
      read: (identity) => redisMessage(raw, identity),
      within: raw.stream,
      isOver: () => entries.isLost(lent),
      tell: (verdict) => tell(lent, verdict),
    });
  }

  const room = Math.max(1, Math.floor(prefetch / streams.length));
  const underway = new Map(streams.map((stream) => [stream, createUnderway(room)]));

  async function open(): Promise<Link> {
    const opened: Connection[] = [];
    const isFirst = first === undefined;
    const ended = new AbortController();
    const end = (reason: unknown): void => {
      ended.abort(reason);
      for (const connection of opened) connection.disconnect();
    };
    const connected = async (): Promise<Connection> => {
      const connection = await openConnection(make, end);
      opened.push(connection);
      return connection;
    };
    try {
      const commands = await connected();
      const readers: Connection[] = [];
      for (const stream of streams) {
        // Entries added while the group was gone are only found from the beginning.
        const from = isFirst && !fromBeginning ? "$" : "0";
        const isNew = await ensureGroup(commands, stream, { group, from });
        if (isNew && !isFirst)
          logger.error("the group of a consumer was gone and is made again, from the first entry on", {
            stream,
            group,
          });
        readers.push(await connected());
      }
      first ??= commands;
      const reads = streams.map((stream, index) =>
        readStream({
          stream,
          group,
          member,
          commands,
          claimAfterMs,
          clock,
          logger,
          take,
          closing: work.closing,
          ended: ended.signal,
          reader: readers[index] as Connection,
          underway: underway.get(stream) ?? createUnderway(room),
        }),
      );
      const read = Promise.all(reads).then(
        () => !ended.signal.aborted,
        (error) => {
          end(error);
          return false;
        },
      );
      const reason = new Promise((resolve) => onAbort(ended.signal, resolve));
      return { commands, read, ended: reason, disconnect: () => end(undefined) };
    } catch (error) {
      end(error);
      throw error;
    }
  }

  try {
    links = await reopening({
      open,
      openWithinMs,
      closing: work.closing,
      clock,
      logger,
      discard: async (link) => link.disconnect(),
      what: `Redis group ${group} of ${streams.join(", ")}`,
    });
  } catch (error) {
    entries.close();
    throw error;
  }
  const opened = links;
  return consumptionOf(async () => {
    const closed = await work.drain();
    const link = opened.current();
    if (closed.drained && (await link.read)) {
      await Promise.all([...underway.values()].map((each) => each.none()));
      await closeQuietly(Promise.all(streams.map((stream) => entries.leave(stream))), LEAVE_MS);
    }
    entries.close();
    link.disconnect();
    return closed;
  });
}

const LEAVE_MS = 5_000;
