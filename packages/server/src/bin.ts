#!/usr/bin/env node
/** The command `rowpost`. */
import { runCommandLine } from "./cli/program.ts";

// `rowpost list | head -1`: a reader that has seen enough is no failure, and without a listener its
// EPIPE would end the process with a stack.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

/** How long a reader may take for what was printed last, once the command must end. */
const LAST_OUTPUT_MS = 1_000;

let mustEnd = false;
process.exitCode = await runCommandLine(process.argv.slice(2), {
  environment: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
  endSoon: () => {
    mustEnd = true;
  },
});
// Writes that wait for a reader who does not read would keep the process alive for good. Without
// them it ends before the timer.
if (mustEnd) setTimeout(() => process.exit(), LAST_OUTPUT_MS).unref();
