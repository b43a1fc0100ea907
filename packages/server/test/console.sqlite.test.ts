/** The console on a SQLite file. */
import { sqlite } from "rowpost/sqlite";
import { describe } from "vitest";
import { temporaryFile } from "./command.ts";
import { consoleCases } from "./console.cases.ts";

describe("console on sqlite", () => {
  consoleCases(async () => {
    const place = await temporaryFile();
    return { database: sqlite({ file: place.file }), drop: () => place.remove() };
  });
});
