#!/usr/bin/env node
/** The command `rowpost`. */
import { runCommandLine } from "./cli/program.ts";

// `rowpost list | head -1`: a reader that has seen enough is no failure, and without a listener its EPIPE would end the process with a stack.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

process.exitCode = await runCommandLine(process.argv.slice(2), {
  environment: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
});
