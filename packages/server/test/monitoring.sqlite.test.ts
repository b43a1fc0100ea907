/** What monitoring asks, and what brings messages forward after an outage, on a SQLite file. */
import type { Database } from "rowpost";
import { createRelay, memory } from "rowpost";
import { sqlite } from "rowpost/sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { insertMessages, rowpostHere, temporaryFile } from "./command.ts";

let place: Awaited<ReturnType<typeof temporaryFile>>;
let database: Database;

beforeEach(async () => {
  place = await temporaryFile();
  database = sqlite({ file: place.file });
  expect(await on("migrate")).toMatchObject({ code: 0 });
});
afterEach(async () => {
  await database.close();
  await place.remove();
});

function on(line: string): ReturnType<typeof rowpostHere> {
  const [name = "", ...args] = line.split(" ");
  return rowpostHere([name, "--database", place.url, ...args]);
}

async function sql(text: string): Promise<void> {
  const session = await database.connect({ purpose: "tool" });
  await session.run({ name: "test", text, params: [] });
  await session.close();
}

test("status --check wants a relay that runs, unless told otherwise", async () => {
  expect(await on("status --check")).toMatchObject({ code: 1, stdout: "0 relays running, 1 expected\n" });
  expect(await on("status --check --min-relays 0")).toMatchObject({ code: 0, stdout: "ok\n" });
  const relay = createRelay({ database, broker: memory(), logger: "silent" });
  await relay.start();
  try {
    expect(await on("status --check")).toMatchObject({ code: 0, stdout: "ok\n" });
    expect(await on("status --check --min-relays 2")).toMatchObject({ code: 1 });
  } finally {
    await relay.stop();
  }
});

test("status --check counts failed messages, and says so in JSON", async () => {
  await insertMessages(database, { count: 2, topic: "orders", prefix: "a" });
  await sql("UPDATE local_message SET state = 3");
  const { code, stdout } = await on("status --check --min-relays 0 --json");
  expect({ code, said: JSON.parse(stdout) }).toMatchObject({ code: 1, said: { problems: [{ check: "failed" }] } });
  expect(await on("status --check --min-relays 0 --max-failed 2")).toMatchObject({ code: 0, stdout: "ok\n" });
});

test("status --check looks at the oldest message that is due, and not at those that wait", async () => {
  await insertMessages(database, { count: 1, topic: "orders", prefix: "a" });
  await sql("UPDATE local_message SET gmt_create = '2020-01-01 00:00:00.000'");
  const { code, stdout } = await on("status --check --min-relays 0");
  expect({ code, stdout }).toMatchObject({
    code: 1,
    stdout: expect.stringContaining("message 1 of orders is due for"),
  });
  await sql("UPDATE local_message SET next_retry_at = '2999-01-01 00:00:00.000'");
  expect(await on("status --check --min-relays 0")).toMatchObject({ code: 0, stdout: "ok\n" });
});

test("reset-backoff brings forward what waits for its next attempt, of this topic alone", async () => {
  await insertMessages(database, { count: 3, topic: "orders", prefix: "a" });
  await insertMessages(database, { count: 1, topic: "bills", prefix: "b" });
  await sql(
    "UPDATE local_message SET retry_count = 1, next_retry_at = '2999-01-01 00:00:00.000' WHERE message_key <> 'a-0'",
  );
  expect(await on("reset-backoff")).toMatchObject({ code: 2, stderr: expect.stringContaining("--topic is missing") });
  expect(await on("reset-backoff --topic orders")).toMatchObject({ code: 0, stdout: "brought 2 messages forward\n" });
  const waiting = JSON.parse((await on("list --json")).stdout) as {
    readonly key: string;
    readonly nextRetryAt: string;
  }[];
  const late = waiting.filter(({ nextRetryAt }) => nextRetryAt !== null && nextRetryAt > "2900");
  expect(late.map(({ key }) => key)).toEqual(["b-0"]);
});
