/**
 * The commands for operators, on a SQLite file: what they print, what they change, and what they
 * refuse to change.
 */
import { rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { createRelay, type Database } from "rowpost";
import { http } from "rowpost/http";
import { sqlite } from "rowpost/sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { insertMessages, rowpost, rowpostHere, temporaryFile } from "./command.ts";

let place: Awaited<ReturnType<typeof temporaryFile>>;
let database: Database;
const closers: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  place = await temporaryFile();
  expect(await on("migrate")).toMatchObject({ code: 0 });
  database = sqlite({ file: place.file });
});
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
  await database.close();
  await place.remove();
});

/** `rowpost LINE --database …`, in this process. */
function on(line: string, ...more: readonly string[]): ReturnType<typeof rowpostHere> {
  return rowpostHere(argumentsOf(line, ...more));
}

function argumentsOf(line: string, ...more: readonly string[]): string[] {
  const [name = "", ...args] = line.split(" ");
  return [name, "--database", place.url, ...args, ...more, ...(name === "relay" ? ["--log-level", "error"] : [])];
}

async function json(line: string): Promise<unknown> {
  const { code, stdout, stderr } = await on(`${line} --json`);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

/** Ids in the order of `rowpost list`, with their states. */
async function states(filter = ""): Promise<Record<string, string>> {
  const rows = (await json(`list${filter}`)) as { readonly id: string; readonly state: string }[];
  return Object.fromEntries(rows.map(({ id, state }) => [id, state]));
}

/** Messages of a receiver that answers 400 become `failed` at once. */
async function fail(): Promise<void> {
  const server: Server = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(request.method === "POST" ? 400 : 204).end("no such order"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  expect(await on(`relay --broker http://127.0.0.1:${port}/hook --once`)).toMatchObject({ code: 3 });
  server.closeAllConnections();
}

describe("relay", () => {
  test("memory: and stdout: are refused beside a relay that works for others, without --force", async () => {
    const own = sqlite({ file: place.file });
    const relay = createRelay({ database: own, broker: http({ url: "http://127.0.0.1:9/" }), logger: "silent" });
    closers.push(
      () => own.close(),
      () => relay.stop(),
    );
    await relay.start();
    for (const broker of ["memory:", "stdout:"]) {
      const refused = await on(`relay --broker ${broker} --once`);
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("give --force") });
    }
    // It gets no shard here.
    expect((await on("relay --broker memory: --once --force --time-limit 1s")).stderr).not.toContain("--force");
  });
});

describe("migrate", () => {
  test("can be run again, and prints its SQL without a database", async () => {
    expect((await on("migrate")).stdout).toContain("nothing to do, table local_message is ready");
    expect(await json("migrate")).toMatchObject({ applied: [], table: "local_message" });
    const { code, stdout } = await rowpostHere([
      "migrate",
      "--print",
      "--database",
      "postgres://nobody@127.0.0.1:9/none",
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain("CREATE TABLE");
    expect(stdout).toContain("local_message_shard");
  });

  test("names other tables with --table", async () => {
    expect((await on("migrate --table shop_message")).stdout).toContain("table shop_message is ready");
    expect((await on("status --table shop_message")).stdout).toContain("no unfinished messages");
    const { code, stderr } = await on("status --table never_made");
    expect(code).toBe(1);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(stderr).toContain("rowpost migrate");
  });
});

describe("looking", () => {
  test("list pages and filters, show tells everything, status counts", async () => {
    await insertMessages(database, { count: 1_005, topic: "orders", prefix: "a" });
    await insertMessages(database, { count: 2, topic: "bills", prefix: "b" });

    const all = (await json("list --limit 2000")) as { readonly id: string }[];
    expect(all).toHaveLength(1_007);
    expect(all[0]?.id).toBe("1007");
    expect(Object.keys(await states(" --topic bills"))).toEqual(["1006", "1007"].sort());
    expect(await states(" --id 3,5 --id 7 --state pending")).toEqual({ 3: "pending", 5: "pending", 7: "pending" });
    expect(await json("list --state 发送失败")).toEqual([]);
    expect(await json("list --before 1h")).toEqual([]);
    expect(await json("list --after 1h --key b-1")).toMatchObject([{ id: "1007", type: "order.created" }]);

    const table = (await on("list --limit 2")).stdout.split("\n");
    expect(table[0]).toMatch(/^ *ID +TYPE +KEY +TOPIC +ORDERING KEY +STATE/);
    expect(table[1]).toMatch(/1007 +order\.created +b-1 +bills +pending/);
    expect(table[3]).toBe("the newest 2; --limit shows more, a filter less");

    const shown = (await on("show 1007")).stdout;
    expect(shown).toMatch(/^state +pending$/m);
    expect(shown).toContain('"name": "王芳"');
    expect(await json("show --type order.created --key b-1")).toMatchObject({ id: "1007", topic: "bills" });
    expect(await on("show 99999")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: "rowpost: there is no message with id 99999\n",
    });

    expect((await on("status")).stdout).toMatch(/^\(all topics\) +pending +1007$/m);
    expect((await on("status --exact")).stdout).toMatch(/^orders +pending +1005 /m);
    expect(await json("status --exact")).toMatchObject({
      counts: [
        { topic: "bills", state: "pending", count: 2 },
        { topic: "orders", count: 1_005 },
      ],
      instances: [],
      suspensions: [],
    });
  });

  test("escape sequences in data do not reach the terminal", async () => {
    const session = await database.connect({ purpose: "tool" });
    const insert = "INSERT INTO local_message (message_type, message_key, topic, message_body) VALUES (?, ?, ?, ?)";
    await session.run({ name: "test", text: insert, params: ["a", "k\u001b[31m", "t\u001b]0;x\u0007", '"\u009b2J"'] });
    await session.close();
    for (const line of ["list", "show 1", "status"]) {
      const { code, stdout } = await on(line);
      expect({ line, code, controls: stdout.match(/[^\P{Cc}\n]/gu) }).toEqual({ line, code: 0, controls: null });
    }
  });
});

describe("changing", () => {
  test("retry: failed messages, and a conflict names the real state", async () => {
    await insertMessages(database, { count: 3, topic: "orders", prefix: "a" });
    await fail();
    expect(await states()).toEqual({ 1: "failed", 2: "failed", 3: "failed" });
    expect((await on("list --state failed")).stdout).toContain("HTTP_400");

    expect(await on("retry --id 1 --author alice --reason fixed")).toMatchObject({
      code: 0,
      stdout: "retried 1 message\n",
    });
    expect(await json("show 1")).toMatchObject({ state: "pending", retryCount: 0, updatedBy: "alice" });
    const again = await on("retry --id 1,2");
    expect(again.code).toBe(1);
    expect(again.stdout).toBe(
      "retried 1 message\nnot changed: 1 is pending, and only failed messages (sent ones with --resend) can be retried\n",
    );
    const looked = (await on("retry --topic orders --dry-run")).stdout.split("\n");
    expect([looked[0], looked[2]]).toEqual([
      "1 messages would be retried",
      expect.stringMatching(/^3 +order\.created +a-2 +orders +failed$/),
    ]);
    expect(await json("retry --topic orders --dry-run")).toMatchObject({ found: 1, complete: true, upToId: "3" });
    expect((await on("suspend --topic orders --dry-run")).stderr).toContain("add --rows, or a filter");
    expect((await on("retry --topic orders --limit 1")).stdout).toBe("retried 1 message\n");
    expect((await on("retry --topic orders")).stdout).toBe("retried 0 messages\nno message matches the filter\n");

    expect(await on("relay --broker memory: --once")).toMatchObject({ code: 0, stdout: "" });
    expect(await states()).toEqual({ 1: "sent", 2: "sent", 3: "sent" });
    expect((await on("retry --id 2")).stdout).toContain("not changed: 2 is sent");
    expect(await json("retry --resend --type order.created --key a-1")).toEqual({
      kind: "resend",
      state: "done",
      changed: 1,
      left: 0,
      vanished: 0,
      conflicts: [],
    });
    expect(await states()).toEqual({ 1: "sent", 2: "pending", 3: "sent" });
  });

  test("suspend and resume: messages", async () => {
    await insertMessages(database, { count: 3, topic: "orders", prefix: "a" });
    expect(
      (await on("suspend --topic orders --rows --limit 2 --for 1h --author bob", "--reason", "to be looked at")).stdout,
    ).toBe("suspended 2 messages\n");
    expect(Object.values(await states()).sort()).toEqual(["pending", "suspended", "suspended"]);
    expect(await json("list --state suspended")).toMatchObject([
      { failReason: null, updatedBy: "bob" },
      { nextRetryAt: expect.any(String) },
    ]);
    expect(await json("show 1")).toMatchObject({
      changes: [{ action: "suspend", author: "bob", reason: "to be looked at" }],
    });
    expect((await on("show 1")).stdout).toMatch(/^by hand +\S+Z suspend by bob: to be looked at$/m);
    expect((await on("suspend --id 1,2,3 --reason x")).code).toBe(1);
    expect((await on("resume --state suspended")).stdout).toBe("resumed 3 messages\n");
    expect((await on("resume --id 1")).stdout).toContain("not changed: 1 is pending, and only suspended messages");
  });

  test("suspend and resume: rules for a topic and for everything", async () => {
    await insertMessages(database, { count: 2, topic: "orders", prefix: "a" });
    await insertMessages(database, { count: 1, topic: "bills", prefix: "b" });
    expect((await on("suspend --topic orders --for 30m --author bob", "--reason", "consumer is broken")).stdout).toBe(
      "suspended topic orders for 30 min; relays notice within a few seconds\n",
    );
    const status = (await on("status")).stdout;
    expect(status).toMatch(/^topic +orders +for 30 min more +bob +consumer is broken$/m);

    expect((await on("relay --broker memory: --once")).code).toBe(0);
    expect(await states()).toEqual({ 1: "suspended", 2: "suspended", 3: "sent" });
    expect((await on("resume --topic orders")).stdout).toBe(
      "resumed topic orders; 2 messages that it had suspended may go\n",
    );
    expect((await on("resume --topic orders")).stdout).toContain("there was no rule for topic orders; 0 messages");

    await json("suspend --all-relay --reason moving");
    expect(await json("status")).toMatchObject({
      suspensions: [{ scope: "relay", value: "*", reason: "moving", endsInMs: null }],
    });
    expect((await on("relay --broker memory: --once")).code).toBe(0);
    expect(await states()).toMatchObject({ 3: "sent" });
    expect(Object.values(await states())).not.toContain("sending");
    expect((await on("resume --all-relay")).stdout).toContain("resumed the whole relay");
    expect((await on("relay --broker memory: --once")).code).toBe(0);
    expect(await states()).toEqual({ 1: "sent", 2: "sent", 3: "sent" });
  });

  test("copy: sends a message anew with what was changed, and says what keeps it from that", async () => {
    await insertMessages(database, { count: 2, topic: "orders", prefix: "a" });
    await fail();
    const changed = ["--body", '{"index":7}', "--header", "tenant=acme", "--header", "x=1=2"];
    const copy = async (...more: readonly string[]) => await on("copy 1", "--reason", "wrong index", ...more);
    const made = await copy("--new-key", "a-0~2", "--topic", "refunds", "--original", "suspend", ...changed);
    expect([made.code, made.stdout]).toEqual([0, "message 3 waits to be sent; 1 is suspended\n"]);
    expect(await json("show 3")).toMatchObject({
      key: "a-0~2",
      topic: "refunds",
      state: "pending",
      body: '{"index":7}',
      headers: '{"rowpost-copy-of":"1","tenant":"acme","x":"1=2"}',
      changes: [{ action: "copied", copyOf: "1", reason: "wrong index" }],
    });
    expect(await json("show 1")).toMatchObject({ state: "suspended", changes: [{ action: "copy", copyId: "3" }] });
    const tries: [readonly string[], number, RegExp][] = [
      [["--new-key", "a-0~3", "--original", "archive"], 1, /1 is suspended, which forbids --original archive/],
      [["--new-key", "a-0~2"], 1, /a-0~2/],
      [["--new-key", "a-0"], 2, /key is that of the original/],
      [["--new-key", "b", "--body", "{"], 2, /the body is not JSON/],
      [["--new-key", "b", "--body", "{}", "--file", "-"], 2, /--body and --file/],
      [["--new-key", "b", "--original", "burn"], 2, /keep, suspend, archive/],
      [[], 2, /--new-key/],
    ];
    for (const [more, code, words] of tries) {
      const refused = await copy(...more);
      expect([more, refused.code, refused.stderr]).toEqual([more, code, expect.stringMatching(words)]);
      expect(refused.stderr.trimEnd().split("\n")).toHaveLength(1);
    }
    expect((await on("copy 99", "--new-key", "b", "--reason", "x")).stderr).toContain("no message with id 99");
    expect(await states()).toEqual({ 1: "suspended", 2: "failed", 3: "pending" });
    const file = `${place.file}.json`;
    await writeFile(file, '{"index":8}\n');
    expect(await json(`copy 1 --new-key a-0~3 --reason again --file ${file}`)).toEqual({
      copyId: "4",
      original: { id: "1", fate: "keep" },
    });
    expect(await json("show 4")).toMatchObject({ body: '{"index":8}' });
    await rm(file);
  });

  test("archive: moves finished messages, deletes failed ones only by name", async () => {
    await insertMessages(database, { count: 2, topic: "orders", prefix: "a" });
    await fail();
    await insertMessages(database, { count: 3, topic: "orders", prefix: "b" });
    expect((await on("relay --broker memory: --once")).code).toBe(0);

    expect((await on("archive --topic orders --before 1h --reason old")).stdout).toBe(
      "archived 0 messages\nno message matches the filter\n",
    );
    expect((await on("archive --topic orders --reason done")).stdout).toBe("archived 3 messages\n");
    expect(await states()).toEqual({ 1: "failed", 2: "failed" });
    expect(Object.keys(await states(" --archived"))).toEqual(["3", "4", "5"]);
    expect(await json("show 4")).toMatchObject({ id: "4", archived: true });
    expect(await json("archive --state failed --topic orders --delete --reason typo")).toMatchObject({
      kind: "delete",
      state: "done",
      changed: 2,
      left: 0,
    });
    expect(await states()).toEqual({});
  });
});

test("each command as a process", async () => {
  await insertMessages(database, { count: 3, topic: "orders", prefix: "a" });
  await fail();
  const lines: readonly (readonly [line: string, code: number, stdout: RegExp])[] = [
    ["migrate", 0, /nothing to do, table local_message is ready\n$/],
    ["status", 0, /^orders +failed +3 /m],
    ["list", 0, /^ *1 +order\.created +a-0 +orders +failed /m],
    ["show 1", 0, /^failReason +HTTP_400: /m],
    ["retry --id 1", 0, /^retried 1 message\n$/],
    ["retry --id 1", 1, /^retried 0 messages\nnot changed: 1 is pending, /],
    ["suspend --id 1 --reason x", 0, /^suspended 1 message\n$/],
    ["resume --id 1", 0, /^resumed 1 message\n$/],
    ["relay --once --broker stdout:", 0, /^\{"messageId":"1",.*"key":"a-0".*\}\n$/],
    ["archive --id 1 --reason x", 0, /^archived 1 message\n$/],
    ["show 1 --json", 0, /"archived": true/],
  ];
  for (const [line, code, stdout] of lines) {
    const ended = await rowpost(argumentsOf(line));
    expect({ line, ...ended }).toEqual({ line, code, signal: null, stdout: expect.stringMatching(stdout), stderr: "" });
  }
});
