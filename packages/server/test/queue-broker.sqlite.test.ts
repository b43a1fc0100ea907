/** `rowpost relay --broker queue:`: into the messages' own file, another one, and as a route. */
import { sqlite } from "rowpost/sqlite";
import { afterEach, expect, test } from "vitest";
import { insertMessages, rowpost, rowpostHere, temporaryFile } from "./command.ts";

const closers: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function file(): Promise<Awaited<ReturnType<typeof temporaryFile>>> {
  const place = await temporaryFile();
  closers.push(() => place.remove());
  return place;
}

/** A file with five messages to `orders`. */
async function outbox(): Promise<Awaited<ReturnType<typeof temporaryFile>>> {
  const place = await file();
  expect(await rowpostHere(["migrate", "--database", place.url])).toMatchObject({ code: 0 });
  const database = sqlite({ file: place.file });
  await insertMessages(database, { count: 5, topic: "orders", prefix: "a" });
  await database.close();
  return place;
}

async function keysIn(url: string): Promise<readonly string[]> {
  const tail = ["queue", "tail", "orders", "--from", "start", "--limit", "5", "--json", "--database", url];
  const { stdout } = await rowpostHere(tail);
  return stdout
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { readonly key: string }).key);
}

test("publishes into the same file, and says what a missing topic needs", async () => {
  const place = await outbox();
  const relay = ["relay", "--database", place.url, "--broker", "queue:", "--once", "--backoff-base", "1ms"];
  const early = await rowpost(relay);
  expect(early.code).toBe(1);
  expect(early.stderr).toContain("rowpost queue create TOPIC");
  await rowpostHere(["queue", "create", "orders", "--database", place.url]);
  expect(await rowpost(relay)).toMatchObject({ code: 0 });
  expect(await keysIn(place.url)).toEqual(["a-0", "a-1", "a-2", "a-3", "a-4"]);
});

test("publishes into another file, as a route too, and refuses a URL that is none", async () => {
  const [place, apart] = [await outbox(), await file()];
  await rowpostHere(["queue", "create", "orders", "--database", apart.url]);
  const bad = await rowpost(["relay", "--database", place.url, "--broker", "queue:ftp://x", "--once"]);
  expect(bad.code).toBe(2);
  expect(bad.stderr).toContain('--broker queue: begins with "ftp:"');
  const args = ["--broker", "memory:", "--route", `orders=queue:${apart.url}`, "--once"];
  expect(await rowpost(["relay", "--database", place.url, ...args])).toMatchObject({ code: 0 });
  expect((await keysIn(apart.url)).toSorted()).toEqual(["a-0", "a-1", "a-2", "a-3", "a-4"]);
});
