#!/usr/bin/env node
// npm links a command only when its file is there, and a fresh clone has no dist before a build.
import { existsSync } from "node:fs";

const command = new URL("../dist/bin.js", import.meta.url);
if (existsSync(command)) await import(command.href);
else {
  console.error("rowpost: this clone is not built yet; run: npm run build");
  process.exitCode = 1;
}
