/** The console's queue pages over a SQLite file. */
import { sqlite } from "rowpost/sqlite";
import { temporaryFile } from "./command.ts";
import { consoleQueueCases } from "./console-queue.cases.ts";

consoleQueueCases(async () => {
  const place = await temporaryFile();
  return { database: sqlite({ file: place.file }), drop: () => place.remove() };
});
