/** The databases that the queue's tests run on: an empty one each, with the queue's tables. */
import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe } from "vitest";
import type { Database } from "../../src/databases/database.ts";
import { mysql } from "../../src/databases/mysql/index.ts";
import { postgres } from "../../src/databases/postgres/index.ts";
import { sqlite } from "../../src/databases/sqlite/index.ts";
import { createQueue, type Queue, type QueueConsumeOptions } from "../../src/queue/index.ts";
import { createTestDatabase, type DatabaseServiceName, describeWithService, sampled } from "../services.ts";
import { createMembers, type Members } from "./members.ts";

/** One database of a test. */
export interface QueuePlace {
  /** What a program of its own needs to open it. */
  readonly address: { readonly kind: "mysql" | "postgres" | "sqlite"; readonly url: string };
  /** A database object as another process would have it. */
  open(): Database;
  /** Runs statements by hand, on a session of its own. */
  query(text: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  drop(): Promise<void>;
}

/** A new database on a server. */
export async function serverPlace(service: DatabaseServiceName): Promise<QueuePlace> {
  const made = await createTestDatabase(service);
  const kind = service === "postgres" ? "postgres" : "mysql";
  const open = (): Database => (kind === "postgres" ? postgres({ url: made.url }) : mysql({ url: made.url }));
  return place({ kind, url: made.url }, open, () => made.drop());
}

/** A new file. */
export function sqlitePlace(): Promise<QueuePlace> {
  const file = join(tmpdir(), `rowpost_test_${process.pid}_${randomBytes(4).toString("hex")}.db`);
  return Promise.resolve(
    place(
      { kind: "sqlite", url: file },
      () => sqlite({ file }),
      async () => {
        for (const end of ["", "-wal", "-shm"]) await rm(`${file}${end}`, { force: true });
      },
    ),
  );
}

function place(address: QueuePlace["address"], open: () => Database, drop: () => Promise<void>): QueuePlace {
  const opened: Database[] = [];
  const openOne = (): Database => {
    const database = open();
    opened.push(database);
    return database;
  };
  return {
    address,
    open: openOne,
    async query(text) {
      const session = await openOne().connect({ purpose: "tool" });
      try {
        return (await session.run({ name: "by hand", text, params: [] })).rows;
      } finally {
        await session.close();
      }
    },
    async drop() {
      for (const database of opened) await database.close();
      await drop();
    },
  };
}

/** What most tests of the queue begin with. */
export interface OpenQueue {
  readonly place: QueuePlace;
  readonly database: Database;
  readonly queue: Queue;
  /** Stopped at the end. */
  readonly members: Members;
  close(): Promise<void>;
}

/** How {@link openQueue} makes it. */
export interface OpenQueueOptions {
  /** Of the topic `orders`; absent: no topic. */
  readonly partitions?: number;
  readonly port?: number;
  readonly producerGroup?: string;
  /** Of every member, unless it says otherwise. */
  readonly usual?: Partial<QueueConsumeOptions>;
}

/** A queue in an empty database. */
export async function openQueue(
  make: () => Promise<QueuePlace>,
  { partitions, port, producerGroup, usual }: OpenQueueOptions = {},
): Promise<OpenQueue> {
  const opened = await make();
  const database = opened.open();
  const queue = createQueue({ database, ip: "10.0.0.7", port, producerGroup });
  await queue.migrate();
  if (partitions !== undefined) await queue.createTopic({ topic: "orders", partitions });
  const members = createMembers(queue, usual);
  return {
    place: opened,
    database,
    queue,
    members,
    async close() {
      await members.stopAll();
      await queue.close();
      await opened.drop();
    },
  };
}

type Define = (make: () => Promise<QueuePlace>, engine: { readonly isServer: boolean }) => void;

/**
 * One block for each engine. MySQL has MariaDB's statements, and the queue's contract runs each of
 * them there, so that a usual run leaves it out.
 */
export function describeOnEach(title: string, define: Define): void {
  describeOn(sampled<DatabaseServiceName>(["mariadb", "postgres"], ["mysql9"]), title, define);
}

/** With MySQL in every run: where locks decide. */
export function describeOnAll(title: string, define: Define): void {
  describeOn(["mariadb", "mysql9", "postgres"], title, define);
}

function describeOn(servers: readonly DatabaseServiceName[], title: string, define: Define): void {
  describe(`${title} on sqlite`, () => define(sqlitePlace, { isServer: false }));
  describeWithService(servers, title, (service) => define(() => serverPlace(service.name), { isServer: true }));
}
