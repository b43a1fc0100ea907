import { describe, expect, it } from "vitest";
import { memory } from "../brokers/memory.ts";
import { sqlite } from "../databases/sqlite/index.ts";
import { DatabaseConflictError, DatabaseUnavailableError, PermissionError } from "../runtime/errors.ts";
import { createEventEmitter } from "../runtime/events.ts";
import { relaySettings } from "./options.ts";
import { createRelayReports } from "./reports.ts";

describe("a statement that failed", () => {
  it.each([
    ["warn other transactions were in the way of a statement; trying again", new DatabaseConflictError("deadlock")],
    ["error the database does not answer; trying again", new DatabaseUnavailableError("cut")],
    ["error the database refuses a statement; trying again", new PermissionError("no right")],
  ])("logs: %s", (line, error) => {
    const lines: string[] = [];
    const logger = {
      debug: () => undefined,
      info: () => undefined,
      warn: (message: string) => void lines.push(`warn ${message}`),
      error: (message: string) => void lines.push(`error ${message}`),
    };
    const database = sqlite({ file: ":memory:" });
    const reports = createRelayReports(relaySettings({ database, broker: memory(), logger }), createEventEmitter());
    reports.databaseAway("heartbeat", error);
    reports.databaseAway("heartbeat", error);
    expect(lines).toEqual([line]);
    expect(reports.failing("heartbeat")?.error).toContain(error.message);
  });
});
