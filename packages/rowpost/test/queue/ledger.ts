/** A queue whose members are processes of their own, which write a ledger of what they do. */
import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type OpenQueue, openQueue, type QueuePlace } from "./places.ts";

/** With the topic `orders`, of one partition. */
export interface Ledger extends Pick<OpenQueue, "place" | "queue"> {
  start(task: object): ChildProcess;
  /** What all of them have written, in order. */
  lines(): string[];
  /** Kills those that still run. */
  close(): Promise<void>;
}

/** `program`: a file of this folder. */
export async function openLedger(make: () => Promise<QueuePlace>, program: string): Promise<Ledger> {
  const folder = mkdtempSync(join(tmpdir(), "rowpost_queue_"));
  const ledger = join(folder, "ledger");
  writeFileSync(ledger, "");
  const opened = await openQueue(make, { partitions: 1 });
  const path = fileURLToPath(new URL(program, import.meta.url));
  const { place } = opened;
  const children: ChildProcess[] = [];
  return {
    place,
    queue: opened.queue,
    start(task) {
      const child = fork(path, [JSON.stringify({ ...place.address, ledger, group: "g", ...task })], { execArgv: [] });
      children.push(child);
      return child;
    },
    lines: () => readFileSync(ledger, "utf8").split("\n").slice(0, -1),
    async close() {
      for (const child of children) if (child.exitCode === null) child.kill("SIGKILL");
      await opened.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
