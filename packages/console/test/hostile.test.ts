/** Rows that want to be more than texts, on every page, those of the queue included. */
import type { Queue } from "rowpost/queue";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { type AppBench, loaded, openQueueApp } from "./bench.ts";

const MOST = "9223372036854775807";
const markup = `"><script>alert(1)</script><img src=x onerror=alert(1)><svg onload=alert(1)>`;
/** As long as a type and a name may be. */
const MARKED = markup.slice(0, 62).trim();
const controls = Array.from({ length: 31 }, (_, at) => String.fromCharCode(at + 1)).join("");
const text = `${markup}${controls}\u202e${"javascript:alert(1) {{1}} ".repeat(4)}`;
const body = `{"n":${MOST}.000000000000000001,"html":"</script><img src=x onerror=alert(1)>","half":"\\ud800"}`;

let app: AppBench;
let queue: Queue;
let message: string;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ app, close, queue } = await openQueueApp());
  message = await fillQueue();
  await fillTables();
});

afterAll(() => close());

/** Messages that a group has given up, with all that a writer may choose; returns the id of one. */
async function fillQueue(): Promise<string> {
  await queue.migrate();
  await queue.createTopic({ topic: "orders", partitions: 1 });
  const group = "billing";
  const consumer = await queue.consume({
    topic: "orders",
    group,
    logger: "silent",
    from: "start",
    retry: { maxAttempts: 1 },
    handler: () => {
      throw new Error(text);
    },
  });
  const headers = { "x-markup": markup };
  const sent = { topic: "orders", key: text.slice(0, 120).trim(), type: MARKED, headers, body: { text } };
  const [id = ""] = await queue.append(sent);
  const isGivenUp = () => queue.groups({ topic: "orders", group }).then(([one]) => one?.dead.count === 1);
  await vi.waitUntil(isGivenUp, { timeout: 60_000, interval: 20 });
  await consumer.stop();
  await queue.pause({ topic: "orders", group, author: MARKED, reason: text });
  return id;
}

/** Messages with the highest ids, and what people did to them and wrote about it. */
async function fillTables(): Promise<void> {
  const quoted = (value: string): string => `'${value.replaceAll("'", "''")}'`;
  const author = quoted(MARKED);
  const columns =
    "id, message_type, message_key, topic, message_body, headers, ordering_key, state, fail_reason, created_by, next_retry_at";
  const row = (id: string, state: number, stored: string): string =>
    `INSERT INTO local_message (${columns}) VALUES (${id}, ${quoted(text)}, ${quoted(id + text)}, ${quoted(text.slice(0, 200))},
       ${stored}, ${quoted(JSON.stringify({ [markup]: text }))}, ${quoted(text.slice(0, 200))}, ${state}, ${quoted(text)}, ${author}, ${state === 2 ? "'2020-01-01 00:00:00.000'" : "NULL"})`;
  await app.sql(row("9223372036854775804", 0, quoted(body)));
  await app.sql(row("9223372036854775805", 2, quoted(body)));
  await app.sql(row("9223372036854775806", 3, "replace(hex(zeroblob(8388608)), '00', '<i')"));
  await app.sql(row(MOST, 3, quoted(body)));
  await app.sql(
    `INSERT INTO local_message_confirmation (table_name, message, consumer, confirmed_at) VALUES ('local_message', 9223372036854775805, ${quoted(text)}, '2026-01-01 00:00:00.000')`,
  );
  await app.sql(
    `INSERT INTO local_message_relay (table_name, owner, label, seen_at) VALUES ('local_message', ${author}, ${quoted(text)}, '2026-01-01 00:00:00.000')`,
  );
  const token = app.tokens.admin;
  for (const scope of ["topic", "type"]) {
    const value = text.slice(0, 200).replaceAll("\u0000", "");
    const asked = await app.ask("suspendScope", { token, body: { scope, value, reason: text } });
    expect(asked.status).toBe(200);
  }
  const filter = { topic: text.slice(0, 200), states: ["pending"] };
  const preview = await app.ask("preview", { token, body: { kind: "suspend", filter } });
  const { id } = preview.json["operation"] as { readonly id: string };
  expect((await app.ask("startOperation", { token, body: { preview: id, reason: text } })).status).toBe(200);
  const isDone = async () => (await app.ask("operation", { token, params: { operation: id } })).text.includes('"done"');
  await vi.waitUntil(isDone, { timeout: 60_000, interval: 50 });
}

const PAGES = [
  ...["overview", "messages", "messages?state=suspended", "failures", "topics", "relays", "operations"],
  ...["unconfirmed", "doctor", "audit", `messages/${MOST}`, "messages/9223372036854775806"],
  ...["queue", "queue?topic=orders", "queue?topic=orders&group=billing"],
];

it("are shown as texts, and no other origin is asked", async () => {
  const page = await app.open("main/overview", "admin", { locale: "zh-CN" });
  const show = () => page.locator("section button:not([disabled])").filter({ hasText: "显示消息体" }).click();
  for (const path of [...PAGES, `queue?topic=orders&message=${message}`]) {
    await page.goto(`${app.address}main/${path}`);
    await loaded(page);
    expect(await page.locator(".problem").count(), path).toBe(0);
    // Each has something to show: an empty page proves nothing.
    expect(await page.locator(".empty").count(), path).toBe(0);
    if (!/messages\/|message=/.test(path)) continue;
    await show();
    await page.locator("pre.body").first().waitFor();
    const shown = await page.locator("pre.body").first().innerText();
    if (path.endsWith(MOST)) {
      expect(shown).toContain(`${MOST}.000000000000000001`);
      expect(shown).toContain("</script><img src=x onerror=alert(1)>");
    }
    if (path.endsWith("806")) expect(shown.length).toBeLessThan(300_000);
  }
  expect(app.complaints.all).toEqual([]);
});
