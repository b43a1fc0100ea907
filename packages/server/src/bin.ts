#!/usr/bin/env node
import { runCommandLine } from "./cli/program.ts";

// `rowpost list | head -1`: a reader that closes early is no failure. Without a listener its EPIPE
// would end the process with a stack.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

/** Time for a reader to take the last output when the command must end. */
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
// Pending writes to a stalled reader would keep the process alive for ever. Without them it ends
// before the timer.
if (mustEnd) setTimeout(() => process.exit(), LAST_OUTPUT_MS).unref();
