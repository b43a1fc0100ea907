#!/usr/bin/env node
/** The command `rowpost`. */
import { runCommandLine } from "./cli/program.ts";

process.exitCode = await runCommandLine(process.argv.slice(2), {
  environment: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
});
