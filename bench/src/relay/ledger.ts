/**
 * A file as the broker of relay processes: a message is published when its line is in the file.
 * Unlike memory it survives a killed process.
 */
import { closeSync, openSync, readSync } from "node:fs";
import type { OutgoingMessage } from "rowpost";
import { numberOf } from "./messages.ts";

export interface LedgerLine {
  readonly pid: number;
  readonly number: number;
  /** When it was handed to the broker, by the machine's clock in ms. */
  readonly atMs: number;
}

/** Lines of a batch; one write, so that a kill leaves all or none. */
export function ledgerLines(batch: readonly OutgoingMessage[], atMs: number): string {
  return batch.map(({ key }) => `${process.pid} ${numberOf(key)} ${atMs}\n`).join("");
}

export interface Ledger {
  read(): readonly LedgerLine[];
  close(): void;
}

/** Follows the file, creating it if needed. */
export function followLedger(file: string): Ledger {
  const descriptor = openSync(file, "a+");
  const chunk = Buffer.alloc(64 * 1024);
  const lines: LedgerLine[] = [];
  let position = 0;
  let rest = "";
  return {
    read() {
      for (;;) {
        const length = readSync(descriptor, chunk, 0, chunk.length, position);
        if (length === 0) return lines;
        position += length;
        const texts = (rest + chunk.toString("latin1", 0, length)).split("\n");
        rest = texts.pop() ?? "";
        for (const text of texts) {
          const [pid = 0, number = 0, atMs = 0] = text.split(" ").map(Number);
          lines.push({ pid, number, atMs });
        }
      }
    },
    close: () => closeSync(descriptor),
  };
}
