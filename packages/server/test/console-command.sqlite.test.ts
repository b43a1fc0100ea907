/** `rowpost console` as a process, its logins, and the console in servers of others. */
import { readFile, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { sqlite } from "rowpost/sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { hashPassword } from "../src/access/secrets.ts";
import { createConsole } from "../src/console.ts";
import { listen } from "../src/http-listen.ts";
import { insertMessages, type Running, rowpost, rowpostHere, startRowpost, temporaryFile } from "./command.ts";

/** Each password costs a third of a second of a quiet processor, as it should. */
const HASHES_MS = 300_000;

let place: Awaited<ReturnType<typeof temporaryFile>>;
const closers: (() => Promise<unknown>)[] = [];
const JSON_TYPE = { "content-type": "application/json" };

beforeEach(async () => {
  place = await temporaryFile();
  expect((await rowpostHere(["migrate", "--database", place.url])).code).toBe(0);
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  await place.remove();
});

/** Starts it on a free port. */
async function start(...args: readonly string[]): Promise<{ readonly running: Running; readonly url: string }> {
  const running = startRowpost(["console", "--database", place.url, "--listen", "0", ...args]);
  closers.push(() => {
    running.child.kill("SIGKILL");
    return running.finished;
  });
  await running.printed(/console at \S+/);
  return { running, url: /console at (http:[^;#\s]+)/.exec(running.stdout())?.[1] ?? "" };
}

async function send(url: string, path: string, body: unknown, headers = {}): Promise<Response> {
  return await fetch(`${url}api/v1${path}`, {
    method: "POST",
    headers: { ...JSON_TYPE, ...headers },
    body: JSON.stringify(body),
  });
}

/** The cookie of an answer, as a browser sends it back. */
function cookieOf(response: Response): { readonly cookie: string } {
  const [given = ""] = response.headers.getSetCookie();
  expect(given).toMatch(/^rowpost-\d+=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
  return { cookie: given.split(";")[0] ?? "" };
}

/** The same session at another port. Browsers keep cookies by host; names tell ports apart. */
function atPort({ cookie }: { readonly cookie: string }, url: string): { readonly cookie: string } {
  return { cookie: cookie.replace(/^rowpost-\d+/, `rowpost-${new URL(url).port}`) };
}

async function whoIs(url: string, headers: Readonly<Record<string, string>>): Promise<unknown> {
  const answer = (await (await fetch(`${url}api/v1/session`, { headers })).json()) as { readonly principal: unknown };
  return answer.principal;
}

test("the one-time link works once and makes an admin, whose session another console knows, until it is ended", async () => {
  const linkFile = `${place.file}.link`;
  const { running, url } = await start("--link-file", linkFile);
  expect((await stat(linkFile)).mode & 0o777).toBe(0o600);
  const link = await readFile(linkFile, "utf8");
  expect(running.stdout()).not.toContain("#t=");
  const [, token] = /#t=([\w-]{43})\n$/.exec(link) ?? [];
  expect((await send(url, "/session/exchange", { token: `${token}x` })).status).toBe(401);
  const [first, second] = await Promise.all([1, 2].map(() => send(url, "/session/exchange", { token })));
  expect(new Set([first?.status, second?.status])).toEqual(new Set([200, 401]));
  const won = first?.status === 200 ? first : second;
  if (won === undefined) throw new Error("nobody could use the link");
  const session = cookieOf(won);
  expect(await whoIs(url, session)).toMatchObject({ role: "admin", via: "console" });

  const other = await start();
  expect(await whoIs(other.url, session), "the cookie of another console on this host").toBeNull();
  expect(await whoIs(other.url, atPort(session, other.url))).toMatchObject({ role: "admin" });
  const created = await rowpost(["token", "create", "--name", "deploy"]);
  const accessFile = `${place.file}.json`;
  const entry = JSON.parse(created.stdout.split("\n").slice(2).join("\n")) as unknown;
  await writeFile(accessFile, JSON.stringify({ tokens: [entry] }));
  const withoutLink = await start("--access", accessFile);
  expect(await whoIs(withoutLink.url, atPort(session, withoutLink.url)), "a console with users has no link").toBeNull();
  const database = sqlite({ file: place.file });
  closers.push(() => database.close());
  const connection = await database.connect({ purpose: "tool" });
  closers.unshift(() => connection.close());
  // What the table has is no way in.
  const { rows } = await connection.run({ name: "test", text: "SELECT hash FROM local_message_session", params: [] });
  expect(rows).toHaveLength(1);
  const hash = { cookie: session.cookie.replace(/=.*/, `=${String(rows[0]?.["hash"])}`) };
  expect(await whoIs(url, hash)).toBeNull();
  const out = await fetch(`${url}api/v1/session`, {
    method: "DELETE",
    headers: { ...session, "sec-fetch-site": "same-origin" },
  });
  expect([out.status, out.headers.getSetCookie()[0]]).toEqual([204, expect.stringContaining("Max-Age=0")]);
  expect(await whoIs(url, session)).toBeNull();

  running.child.kill("SIGTERM");
  expect(await running.finished).toMatchObject({ code: 0, stderr: "" });
  await expect(stat(linkFile)).rejects.toThrow("ENOENT");
});

test(
  "users log in with passwords, programs come with tokens, and a name rests after five wrong ones",
  async () => {
    const user = await rowpost(["user", "hash", "--name", "王芳", "--role", "operator", "--topics", "orders.*,stock"], {
      ROWPOST_NEW_PASSWORD: "correct horse",
    });
    const made = await rowpost(["token", "create", "--name", "deploy", "--topics", "stock", "--expires", "1h"]);
    const [token = "", , ...entry] = made.stdout.split("\n");
    const access = { users: [JSON.parse(user.stdout)], tokens: [JSON.parse(entry.join("\n"))] };
    const file = `${place.file}.json`;
    await writeFile(file, JSON.stringify(access));
    expect(JSON.stringify(access)).not.toContain(token);
    const { running, url } = await start("--access", file);
    expect(running.stdout()).not.toContain("#t=");
    expect(await whoIs(url, { authorization: `Bearer ${token}` })).toEqual({
      name: "deploy",
      role: "reader",
      via: "api",
      topics: ["stock"],
    });
    expect((await fetch(`${url}metrics`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(401);
    const login = (password: string, name = "王芳") => send(url, "/session", { name, password });
    const opened = await login("correct horse");
    const limited = { via: "console", topics: ["orders.*", "stock"] };
    expect(await opened.clone().json()).toMatchObject({ principal: { name: "王芳", role: "operator", ...limited } });
    const session = cookieOf(opened);
    expect(await whoIs(url, session)).toEqual({ name: "王芳", role: "operator", ...limited });
    for (let tries = 0; tries < 5; tries += 1) expect((await login("wrong")).status).toBe(401);
    const rests = await login("correct horse");
    expect([rests.status, Number(rests.headers.get("retry-after")) > 0]).toEqual([429, true]);
    expect((await login("wrong", "nobody")).status).toBe(401);
    expect(await whoIs(url, session), "who is in stays in").toMatchObject({ name: "王芳" });

    // A session says who, and the file what that one may do: also after a restart with another
    // file.
    const [entryOf] = access.users as { name: string; role: string; topics: string[] }[];
    for (const [users, who] of [
      [[{ ...entryOf, role: "reader" }], { name: "王芳", role: "reader", ...limited }],
      [[{ ...entryOf, topics: undefined }], { name: "王芳", role: "operator", via: "console" }],
      [[{ ...entryOf, name: "李雷" }], null],
      [[{ ...entryOf, password: await hashPassword("another one") }], null],
    ] as const) {
      await writeFile(file, JSON.stringify({ users }));
      const again = await start("--access", file);
      expect(await whoIs(again.url, atPort(session, again.url))).toEqual(who);
    }
  },
  HASHES_MS,
);

test("nothing is open to other machines without users, and a wrong file is told in one line", async () => {
  const open = ["console", "--database", place.url, "--listen", "0.0.0.0:0"];
  expect(await rowpostHere(open)).toMatchObject({ code: 2, stderr: expect.stringContaining("--access FILE") });
  const file = `${place.file}.json`;
  for (const [content, words] of [
    ["{", "is not JSON"],
    ["{}", "names neither users nor tokens"],
    ['{"users":[{"name":"a","role":"admin","password":"plain"}]}', "users.0.password"],
    ['{"users":[],"admin":true}', "admin"],
  ] as const) {
    await writeFile(file, content);
    const { code, stderr } = await rowpostHere([...open, "--access", file]);
    expect([content, code, stderr.split("\n").length, stderr.includes(words)]).toEqual([content, 2, 2, true]);
    expect(stderr).not.toContain("plain");
  }
  const missing = await rowpostHere(["console", "--database", place.url, "--table", "never_made", "--listen", "0"]);
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining("rowpost migrate") });
});

test("rights to some topics may come from the program around it, and not by mistake", async () => {
  const database = sqlite({ file: place.file });
  closers.push(() => database.close());
  const answered = async (topics: unknown, path: string) => {
    const authorize = () => ({ name: "boss", role: "admin" as const, topics: topics as string[] });
    const made = createConsole({ sources: [{ name: "main", database }], authorize });
    closers.push(() => made.close());
    return await made.fetch(new Request(`http://x${path}`));
  };
  const known = await answered(["orders"], "/api/v1/session");
  expect(await known.json()).toMatchObject({ principal: { via: "host", topics: ["orders"] } });
  const statuses = [undefined, ["orders"]].map(async (topics) => (await answered(topics, "/metrics")).status);
  expect(await Promise.all(statuses)).toEqual([200, 401]);
  for (const topics of [null, "orders", [], [""]])
    expect([topics, (await answered(topics, "/api/v1/session")).status]).toEqual([topics, 500]);
});

test("what the command line changes stands in the same audit", async () => {
  const database = sqlite({ file: place.file });
  closers.push(() => database.close());
  await insertMessages(database, { count: 1, topic: "orders", prefix: "a" });
  expect(
    (await rowpostHere(["suspend", "--database", place.url, "--id", "1", "--author", "ann", "--reason", "look"])).code,
  ).toBe(0);
  const made = createConsole({
    sources: [{ name: "main", database }],
    authorize: () => ({ name: "boss", role: "admin" }),
  });
  closers.push(() => made.close());
  const answer = await made.fetch(new Request("http://x/api/v1/s/main/audit"));
  const by = { author: "ann", via: "cli", reason: "look" };
  expect(await answer.json()).toMatchObject({
    items: [
      { ...by, action: "many suspend", result: "done" },
      { ...by, action: "suspend", ids: ["1"], before: [{ id: "1", state: "pending" }] },
      { ...by, action: "many suspend", result: "begun" },
    ],
  });
});

test(
  "an address rests after twenty wrong passwords, whatever the names were",
  async () => {
    const database = sqlite({ file: place.file });
    closers.push(() => database.close());
    const ann = { name: "ann", role: "operator", password: await hashPassword("correct horse") } as const;
    const access = { users: [ann] };
    const made = createConsole({ sources: [{ name: "main", database }], access, publicUrl: "http://ops.test" });
    closers.push(() => made.close());
    const server = createServer((request, response) => made.node(request, response));
    const listening = await listen(server, { host: "127.0.0.1", port: 0 }, "--listen");
    closers.push(() => listening.close());
    // What stands in front of the last address is the visitor's own invention.
    const from = (address: string, name: string, password: string, invented = "10.9.9.9") =>
      send(
        `http://${listening.address}/`,
        "/session",
        { name, password },
        { "x-forwarded-for": `${invented}, ${address}` },
      );
    for (let tries = 0; tries < 20; tries += 1)
      expect((await from("10.0.0.1", `name ${tries}`, "wrong", `10.1.1.${tries}`)).status).toBe(401);
    expect((await from("10.0.0.1", "ann", "correct horse")).status).toBe(429);
    expect((await from("10.0.0.2", "ann", "correct horse")).status).toBe(200);
  },
  HASHES_MS,
);
