/** A proxy in front that says who asks: believed with its secret and from its address alone. */
import { request as ask, createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Database } from "rowpost";
import { migrate } from "rowpost";
import { sqlite } from "rowpost/sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { proxySchema } from "../src/access/proxy.ts";
import { sha256 } from "../src/access/secrets.ts";
import { type Console, type ConsoleOptions, createConsole } from "../src/console.ts";
import { temporaryFile } from "./command.ts";

const SECRET = "s3cret of the proxy";
const PROXY = {
  user: "x-forwarded-user",
  groups: "x-forwarded-groups",
  secret: { header: "x-proxy-secret", hash: sha256(SECRET) },
  from: ["10.0.0.0/8", "127.0.0.1"],
  roles: [
    { group: "ops-admins", role: "admin" as const },
    { group: "orders", role: "operator" as const, topics: ["orders.*"] },
  ],
};
const ANN = { "x-forwarded-user": "ann", "x-forwarded-groups": "staff, ops-admins", "x-proxy-secret": SECRET };

let place: Awaited<ReturnType<typeof temporaryFile>>;
let database: Database;
const closers: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  place = await temporaryFile();
  database = sqlite({ file: place.file });
  await migrate(database, { layout: database.defaultLayout });
});

afterAll(async () => {
  for (const close of closers.splice(0)) await close();
  await database.close();
  await place.remove();
});

/** A console that is served, and its port. */
async function listening(access: NonNullable<ConsoleOptions["access"]>, publicUrl?: string): Promise<number> {
  const made: Console = createConsole({ sources: [{ name: "main", database }], access, publicUrl });
  const server: Server = createServer((...both) => made.node(...both));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(async () => {
    server.closeAllConnections();
    server.close();
    await made.close();
  });
  return (server.address() as AddressInfo).port;
}

/** The same, with what it answers to a request with these headers. */
async function served(proxy: Partial<typeof PROXY> = {}, publicUrl?: string, access: ConsoleOptions["access"] = {}) {
  const port = await listening({ ...access, proxy: { ...PROXY, ...proxy } }, publicUrl);
  return (path: string, headers: Readonly<Record<string, string>>, body?: object) =>
    new Promise<{ readonly status: number; readonly json: Record<string, unknown> }>((resolve, reject) => {
      const method = body === undefined ? "GET" : "POST";
      const type = body === undefined ? {} : { "content-type": "application/json" };
      const sent = ask({ port, host: "127.0.0.1", path: `/api/v1${path}`, method, headers: { ...type, ...headers } });
      sent.on("error", reject).on("response", (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, json: JSON.parse(text) }));
      });
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
}

describe("a proxy that says who asks", () => {
  test("gives the rights of the first group that somebody is in, to its topics", async () => {
    const look = await served();
    expect((await look("/session", ANN)).json["principal"]).toEqual({ name: "ann", role: "admin", via: "console" });
    const bob = { ...ANN, "x-forwarded-user": "bob", "x-forwarded-groups": "orders,ops" };
    const { json } = await look("/session", bob);
    expect(json["principal"]).toEqual({ name: "bob", role: "operator", via: "console", topics: ["orders.*"] });
    const eve = await look("/meta", { ...ANN, "x-forwarded-user": "eve", "x-forwarded-groups": "staff" });
    expect([eve.status, eve.json["detail"]]).toEqual([403, expect.stringContaining("no group that has rights here")]);
    expect((await look("/meta", {})).status).toBe(401);
    // The proxy lets somebody through whom it does not know.
    expect((await look("/meta", { "x-proxy-secret": SECRET })).status).toBe(401);
    const all = await served({ roles: [{ group: "*", role: "reader" }] as never });
    expect((await all("/session", { ...ANN, "x-forwarded-groups": "" })).json["principal"]).toMatchObject({
      role: "reader",
    });
  });

  test("is not believed without its secret, or from another place: the headers are refused", async () => {
    const look = await served();
    const { "x-proxy-secret": _, ...bare } = ANN;
    for (const headers of [
      bare,
      { ...ANN, "x-proxy-secret": "guessed" },
      { "x-forwarded-groups": "ops-admins" },
      { ...ANN, "x-forwarded-user": "eve, ann" },
    ]) {
      const { json, status } = await look("/meta", headers);
      expect([status, json["type"]]).toEqual([400, "urn:rowpost:problem:invalid-request"]);
    }
    const elsewhere = await served({ from: ["10.0.0.0/8", "fd00::/8"] });
    expect((await elsewhere("/meta", ANN)).status).toBe(400);
    // What a header says of the address is not where it came from.
    const forwarded = await served({ from: ["10.0.0.0/8"] }, "https://ops.example.com");
    expect((await forwarded("/meta", { ...ANN, "x-forwarded-for": "10.1.2.3" })).status).toBe(400);
    const behind = await served({}, "https://ops.example.com");
    expect((await behind("/meta", { ...ANN, "x-forwarded-for": "203.0.113.9" })).status).toBe(200);
  });

  test("has no token of its own tried, and its users' browsers are asked where a change comes from", async () => {
    const look = await served();
    expect((await look("/meta", { ...ANN, authorization: "Bearer of-the-proxy" })).status).toBe(200);
    const body = { reason: "x", topic: "orders" };
    const foreign = { ...ANN, "sec-fetch-site": "cross-site" };
    expect((await look("/s/main/reset-backoff", foreign, body)).status).toBe(403);
    expect((await look("/s/main/reset-backoff", ANN, body)).status).toBe(403);
    expect((await look("/s/main/reset-backoff", { ...ANN, "sec-fetch-site": "same-origin" }, body)).status).toBe(200);
  });

  test("passes programs on with their tokens, which no browser sends by itself", async () => {
    const token = "rp_of_a_program";
    const tokens = [{ name: "deploy", role: "operator" as const, hash: sha256(token) }];
    const look = await served({}, undefined, { tokens });
    const headers = { "x-proxy-secret": SECRET, authorization: `Bearer ${token}` };
    expect((await look("/s/main/reset-backoff", headers, { reason: "x", topic: "orders" })).status).toBe(200);
  });

  test("leaves the metrics to those who may see all topics, though it asks from this machine", async () => {
    const url = `http://127.0.0.1:${await listening({ proxy: PROXY })}/metrics`;
    const statusOf = async (headers: Readonly<Record<string, string>>) => (await fetch(url, { headers })).status;
    const bob = { ...ANN, "x-forwarded-groups": "orders" };
    expect([await statusOf(ANN), await statusOf(bob), await statusOf({})]).toEqual([200, 401, 401]);
  });

  test("is described in words when it is described wrongly", () => {
    const wrong = (change: object) => proxySchema.safeParse({ ...PROXY, ...change }).error?.issues[0]?.path.join(".");
    expect(wrong({})).toBeUndefined();
    expect(wrong({ from: ["10.0.0.0/33"] })).toBe("from.0");
    expect(wrong({ from: ["proxy.example.com"] })).toBe("from.0");
    expect(wrong({ from: [] })).toBe("from");
    expect(wrong({ user: "x y" })).toBe("user");
    expect(wrong({ secret: { header: "x", hash: "plain" } })).toBe("secret.hash");
    expect(wrong({ secret: { header: "x", hash: sha256("") } })).toBe("secret.hash");
    expect(wrong({ roles: [{ group: "ops", role: "root" }] })).toBe("roles.0.role");
    expect(wrong({ roles: [] })).toBe("roles");
  });
});
