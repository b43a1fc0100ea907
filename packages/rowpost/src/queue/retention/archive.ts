/**
 * Archives a month as gzipped NDJSON, one file for messages and one for records, each written under
 * a temporary name, synced, read back and counted before it is renamed.
 */
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { ArchiveError } from "../../message/queue-errors.ts";
import { describeError } from "../../runtime/errors.ts";
import type { Retention } from "./dropping.ts";
import type { MonthCounts } from "./requests.ts";

export interface ArchiveRequest {
  readonly topic: string;
  readonly month: number;
  readonly folder: string;
  /** Makes the temporary names unique. */
  readonly owner: string;
  /** A throw ends the archive. */
  readonly onRows: (written: number) => Promise<void>;
}

export interface Archive {
  readonly files: readonly [messages: string, records: string];
  readonly counts: MonthCounts;
}

/** Throws `ArchiveError`; no incomplete file has its final name then. */
export async function archiveMonth(
  store: Pick<Retention, "count" | "rows">,
  request: ArchiveRequest,
): Promise<Archive> {
  const { topic, month } = request;
  const folder = resolve(request.folder);
  let written = 0;

  async function write(of: "messages" | "records"): Promise<{ file: string; lines: number }> {
    const file = join(folder, `${topic}_${month}.${of}.ndjson.gz`);
    const part = `${file}.${request.owner}.part`;
    async function* lines(): AsyncGenerator<string> {
      for await (const rows of store.rows(topic, month, of)) {
        yield rows.map((row) => `${JSON.stringify(row)}\n`).join("");
        written += rows.length;
        await request.onRows(written);
      }
    }
    try {
      await pipeline(Readable.from(lines()), createGzip(), createWriteStream(part, { flags: "wx" }));
      await sync(part);
      const count = await linesOf(part);
      await rename(part, file);
      return { file, lines: count };
    } catch (error) {
      await rm(part, { force: true });
      throw error;
    }
  }

  try {
    await mkdir(folder, { recursive: true });
    const messages = await write("messages");
    const records = await write("records");
    await sync(folder);
    // After the files: rows written meanwhile show as a difference.
    const counts = await store.count(topic, month);
    if (counts.messages !== messages.lines || counts.records !== records.lines) {
      throw new ArchiveError(
        `the tables of ${topic} in ${month} have ${counts.messages} messages and ${counts.records} records, the files ${messages.lines} and ${records.lines}: something was written meanwhile, run it again`,
      );
    }
    return { files: [messages.file, records.file], counts };
  } catch (error) {
    if (error instanceof ArchiveError) throw error;
    throw new ArchiveError(`${topic} of ${month} could not be archived to ${folder}: ${describeError(error)}`, error);
  }
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function linesOf(path: string): Promise<number> {
  let lines = 0;
  await pipeline(createReadStream(path), createGunzip(), async (chunks: AsyncIterable<Buffer>) => {
    for await (const chunk of chunks) {
      for (const byte of chunk) if (byte === 10) lines += 1;
    }
  });
  return lines;
}
