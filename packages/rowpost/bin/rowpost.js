#!/usr/bin/env node
// `npx rowpost` finds this package first: the command line is that of rowpost-server, where it is
// installed beside it or in the folder that this is called from.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

function commandLine() {
  for (const from of [join(process.cwd(), "package.json"), import.meta.filename]) {
    try {
      return createRequire(from).resolve("rowpost-server/package.json");
    } catch {
      // Not there, or not to be seen from here.
    }
  }
  return undefined;
}

const found = commandLine();
if (found !== undefined) await import(new URL("bin/rowpost.js", pathToFileURL(found)).href);
else {
  console.error(
    "rowpost: the command line is in the package rowpost-server: npm install rowpost-server, or npx rowpost-server …",
  );
  process.exitCode = 1;
}
