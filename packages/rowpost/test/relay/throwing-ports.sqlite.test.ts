/** A logger and metrics that throw: no message is left unsettled, and somebody hears of it once. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createRelay, type Logger, type Metrics, memory } from "../../src/index.ts";
import { createRelayDatabase, type RelayTestDatabase } from "./bench-database.ts";

let database: RelayTestDatabase;
beforeEach(async () => {
  database = await createRelayDatabase("sqlite");
});
afterEach(async () => {
  vi.restoreAllMocks();
  await database.drop();
});

const broken = (): never => {
  throw new Error("broken");
};

it("settles every message though each measurement throws, and logs that once", async () => {
  const errors: string[] = [];
  const logger: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: (line) => void errors.push(line) };
  const metrics: Metrics = { increment: broken, gauge: broken, observe: broken };
  await database.insert([{ key: "1" }, { key: "2" }]);
  const relay = createRelay({ database: database.connect(), broker: memory(), logger, metrics });
  await relay.drain();
  expect(relay.counts.sent).toBe(2);
  expect(errors).toEqual(["the metrics have thrown; they must not"]);
});

it("settles every message though each log line throws, and says that once on standard error", async () => {
  const said = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const logger: Logger = { debug: broken, info: broken, warn: broken, error: broken };
  await database.insert([{ key: "1" }, { key: "2" }]);
  const relay = createRelay({ database: database.connect(), broker: memory(), logger });
  await relay.drain();
  expect(relay.counts.sent).toBe(2);
  expect(said.mock.calls.map(([line]) => String(line))).toEqual([
    expect.stringContaining("rowpost ERROR the logger has thrown; it must not"),
  ]);
});
