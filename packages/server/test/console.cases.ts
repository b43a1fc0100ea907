/**
 * The console's guarantees, on any database: who may do what, whose word counts, what breaks it.
 */
import type { Database } from "rowpost";
import type { MessageState } from "rowpost/admin";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ROLES, type Route } from "../src/http/route.ts";
import { ROUTES, type RouteName } from "../src/http/routes.ts";
import { limitOf } from "../src/http/topic-limits.ts";
import { type ConsoleBench, etagOf, openConsole, type Sent } from "./console.ts";
import { seedAlerts } from "./seed-alerts.ts";

interface Expected {
  /** Status for nobody, reader, operator, admin, and admin of a console that is read-only. */
  readonly status: readonly [nobody: number, reader: number, operator: number, admin: number, readOnly: number];
  /** State of the message that it is called with. */
  readonly state?: MessageState;
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string>>;
}

const LOOK: Expected = { status: [401, 200, 200, 200, 200] };
/** There is no such topic. */
const NONE: Expected = { status: [401, 404, 404, 404, 404] };
const reason = { reason: "ticket 7" };
const NO_OPERATION = "00000000-0000-4000-8000-000000000000";

/** A route without a line does not compile. */
const EXPECTED: Readonly<Record<RouteName, Expected>> = {
  session: { status: [200, 200, 200, 200, 200] },
  login: { status: [401, 401, 401, 401, 401], body: { name: "eve", password: "x" } },
  exchangeLink: { status: [401, 401, 401, 401, 401], body: { token: "x" } },
  logout: { status: [204, 204, 204, 204, 204] },
  meta: LOOK,
  pulse: LOOK,
  overview: LOOK,
  topics: LOOK,
  relays: LOOK,
  messages: LOOK,
  lookup: { ...LOOK, query: { word: "put-1-00000" } },
  message: { ...LOOK, state: "failed" },
  keyQueue: { ...LOOK, state: "failed" },
  body: { status: [401, 403, 200, 200, 200], state: "failed" },
  rawBody: { status: [401, 403, 200, 200, 200], state: "failed" },
  retry: { status: [401, 403, 200, 200, 403], state: "failed", body: reason },
  resend: { status: [401, 403, 403, 200, 403], state: "sent", body: reason },
  suspend: { status: [401, 403, 200, 200, 403], state: "pending", body: reason },
  resume: { status: [401, 403, 200, 200, 403], state: "suspended", body: reason },
  confirm: { status: [401, 403, 200, 200, 403], state: "sent", body: reason },
  archive: { status: [401, 403, 403, 200, 403], state: "sent", body: reason },
  copy: { status: [401, 403, 403, 200, 403], state: "failed", body: reason },
  suspendScope: { status: [401, 403, 200, 200, 403], body: { ...reason, scope: "type", value: "nobody" } },
  resumeScope: { status: [401, 403, 200, 200, 403], body: { ...reason, scope: "type", value: "nobody" } },
  resetBackoff: { status: [401, 403, 200, 200, 403], body: { ...reason, topic: "nobody" } },
  preview: { status: [401, 403, 200, 200, 403], body: { kind: "retry", filter: { topic: "nobody" } } },
  startOperation: { status: [401, 403, 410, 410, 403], body: { ...reason, preview: NO_OPERATION } },
  operations: LOOK,
  operation: { status: [401, 404, 404, 404, 404] },
  cancelOperation: { status: [401, 403, 404, 404, 403], body: reason },
  failures: LOOK,
  queueTopics: LOOK,
  ...({ queueGroups: NONE, queueMessages: NONE, queueMessage: NONE, queueDead: NONE, queueRewinds: NONE } as const),
  queueBody: { status: [401, 403, 404, 404, 404] },
  queueRewindPlan: { status: [401, 403, 404, 404, 404], query: { to: "start" } },
  queueRewind: { status: [401, 403, 404, 404, 403], body: { ...reason, to: "start", expected: [] } },
  queuePause: { status: [401, 403, 404, 404, 403], body: reason },
  queueResume: { status: [401, 403, 404, 404, 403], body: reason },
  queueSkip: { status: [401, 403, 404, 404, 403], body: { ...reason, id: "1" } },
  queueRedeliver: { status: [401, 403, 404, 404, 403], body: { ...reason, all: true } },
  queueDiscard: { status: [401, 403, 403, 404, 403], body: { ...reason, ids: ["1"] } },
  queueEdit: { status: [401, 403, 403, 404, 403], body: { ...reason, id: "1", body: "{}" } },
  unconfirmed: LOOK,
  doctor: LOOK,
  alerts: LOOK,
  addSilence: { status: [401, 403, 200, 200, 403], body: { ...reason, rule: "failed", subject: "nobody" } },
  endSilence: { status: [401, 403, 404, 404, 403], body: reason },
  testChannel: { status: [401, 403, 403, 404, 404] },
  audit: LOOK,
};
const NAMES = Object.keys(ROUTES) as RouteName[];

/** Of an admin whose rights reach other topics: what is named is not there, or all is closed. */
function limitedStatus(name: RouteName): number {
  const limit = limitOf(ROUTES[name]);
  if (limit === undefined) return 403;
  if (limit === "message" || limit === "topic" || limit === "operation") return 404;
  return ["suspendScope", "resumeScope", "resetBackoff", "preview"].includes(name) ? 403 : EXPECTED[name].status[3];
}

/** Defines them; `create` makes an empty database. */
export function consoleCases(create: () => Promise<{ readonly database: Database; drop(): Promise<void> }>): void {
  let bench: ConsoleBench;
  let drop: () => Promise<void>;
  beforeAll(async () => {
    const made = await create();
    drop = () => made.drop();
    bench = await openConsole(made.database);
  });
  afterAll(async () => {
    await bench.close();
    await drop();
  });

  /** The newest entries of the audit. */
  async function audit(limit: number): Promise<Record<string, unknown>[]> {
    const { json } = await bench.ask("audit", { token: bench.tokens.admin, query: { limit: String(limit) } });
    return json["items"] as Record<string, unknown>[];
  }
  async function auditSize(): Promise<number> {
    return Number((await bench.sql("SELECT count(*) AS n FROM local_message_audit"))[0]?.["n"]);
  }
  async function stateOf(id: string): Promise<unknown> {
    return (await bench.sql(`SELECT state, lock_version FROM local_message WHERE id = ${id}`))[0];
  }
  /** A request that is right in everything but who sends it. */
  async function rightRequest(name: RouteName): Promise<Sent & { readonly id: string }> {
    const { body, query, state = "pending" } = EXPECTED[name];
    const [id = ""] = await bench.put(state, 1);
    const route: Route = ROUTES[name];
    const headers = route.ifMatch === true ? { "if-match": await etagOf(bench, id) } : {};
    // A copy needs a key that no message has.
    const sent = name === "copy" ? { ...reason, key: `copy-of-${id}` } : body;
    return { id, params: { id }, headers, ...(query && { query }), ...(sent === undefined ? {} : { body: sent }) };
  }

  describe("rights", () => {
    test.each(NAMES)("%s: each role and none, and who was denied is written down", async (name) => {
      const route: Route = ROUTES[name];
      const [nobody, ...others] = EXPECTED[name].status;
      const { expired, unknown } = bench.tokens;
      // Its own: of those without a name only so many are written down.
      const fresh = bench.another();
      const cases = [
        { who: "(nobody)", token: undefined, status: nobody, of: fresh },
        // A token that is wrong is nobody's, where anyone may come too.
        ...[expired, unknown].map((token) => ({ who: "(nobody)", token, status: 401, of: fresh })),
        ...[...ROLES, "admin" as const].map((role, index) => ({
          who: `the ${role}`,
          token: bench.tokens[role],
          status: others[index],
          of: index < ROLES.length ? bench.made : bench.readOnly,
        })),
        { who: "the limited", token: bench.tokens.limited, status: limitedStatus(name), of: bench.made },
      ];
      for (const { of, status, token, who } of cases) {
        const request = await rightRequest(name);
        const before = [await stateOf(request.id), await auditSize()];
        const answer = await bench.ask(name, { ...request, token }, of);
        expect([who, answer.status]).toEqual([who, status]);
        const isHidden = who === "the limited" && ["message", "topic"].includes(limitOf(route) ?? "");
        if (status !== 401 && status !== 403 && !isHidden) continue;
        expect(answer.headers.get("content-type")).toBe("application/problem+json");
        const isWritten = who !== "(nobody)" || route.method !== "GET";
        expect([await stateOf(request.id), await auditSize()]).toEqual([
          before[0],
          Number(before[1]) + (isWritten ? 1 : 0),
        ]);
        if (isWritten)
          expect((await audit(1))[0]).toMatchObject({
            author: who,
            action: route.audit ?? name,
            result: "denied",
            changed: 0,
          });
      }
      await fresh.close();
    });

    test("a reader sees only what they did themselves in the audit; what an admin may is told by meta", async () => {
      const { json } = await bench.ask("audit", { token: bench.tokens.reader, query: { author: "the admin" } });
      const authors = new Set((json["items"] as { readonly author: string }[]).map(({ author }) => author));
      expect([...authors]).toEqual(["the reader"]);
      // To some collations these are one name.
      await bench.sql("UPDATE local_message_audit SET author = 'The Reader' WHERE author = 'the operator'");
      const { json: own } = await bench.ask("audit", { token: bench.tokens.reader });
      expect(new Set((own["items"] as { readonly author: string }[]).map(({ author }) => author))).toEqual(authors);
      const { json: meta } = await bench.ask("meta", { token: bench.tokens.operator });
      const allowed = NAMES.filter((name) => EXPECTED[name].status[2] !== 403);
      expect(meta["permissions"]).toEqual(allowed);
    });
  });

  test("somebody without a login cannot fill the audit", async () => {
    const before = await auditSize();
    const params = { id: "1", source: "x".repeat(15_000) };
    const fresh = bench.another();
    const tries = Array.from({ length: 200 }, () => bench.ask("retry", { params, body: reason }, fresh));
    expect(new Set((await Promise.all(tries)).map(({ status }) => status))).toEqual(new Set([401]));
    await fresh.close();
    expect((await auditSize()) - before).toBeLessThanOrEqual(60);
    const [newest] = await audit(1);
    expect(newest).toMatchObject({ author: "(nobody)", result: "denied" });
    expect(JSON.stringify(newest).length).toBeLessThan(1_000);
  });

  test("a number may be the id of one message and the key of another: both are found", async () => {
    const [id = "", other = ""] = await bench.put("sent", 2);
    await bench.sql(`UPDATE local_message SET message_key = '${id}' WHERE id = ${other}`);
    const { json } = await bench.ask("lookup", { token: bench.tokens.reader, query: { word: id } });
    expect((json["items"] as { readonly id: string }[]).map((message) => message.id)).toEqual([id, other]);
  });

  describe("rights that reach some topics only", () => {
    const items = (answer: { readonly json: Record<string, unknown> }) => answer.json["items"] as { topic: string }[];
    const topicsOf = (answer: { readonly json: Record<string, unknown> }) => [
      ...new Set(items(answer).map(({ topic }) => topic)),
    ];

    test("lists, counts and causes are those of these topics, whatever is asked for", async () => {
      await bench.put("failed", 3, { topic: "mine.orders", reason: "HTTP_503: mine" });
      await bench.put("failed", 120, { topic: "theirs", reason: "HTTP_503: theirs" });
      await bench.put("failed", 2, { topic: "mine.stock", reason: "HTTP_503: mine" });
      const token = bench.tokens.limited;
      const fresh = bench.another();
      const look = (name: RouteName, query = {}) => bench.ask(name, { token, query }, fresh);
      const all = await look("messages", { limit: "50" });
      expect([topicsOf(all), all.json["total"]]).toEqual([["mine.stock", "mine.orders"], { value: 5, relation: "eq" }]);
      const page = await look("messages", { limit: "4", in: "live,archive" });
      const rest = await look("messages", { limit: "4", in: "live,archive", cursor: String(page.json["next"]) });
      expect([items(page).length, topicsOf(rest)]).toEqual([4, ["mine.orders"]]);
      expect(items(await look("messages", { topic: "theirs" }))).toEqual([]);
      expect(topicsOf(await look("messages", { topic: "mine.stock" }))).toEqual(["mine.stock"]);
      const [theirs] = await bench.sql("SELECT id, message_key FROM local_message WHERE topic = 'theirs' LIMIT 1");
      for (const word of [theirs?.["id"], theirs?.["message_key"]])
        expect(items(await look("lookup", { word: String(word) }))).toEqual([]);
      expect(topicsOf(await look("failures"))).toEqual(["mine.orders", "mine.stock"]);
      expect(topicsOf(await look("topics"))).toEqual(["mine.orders", "mine.stock"]);
      const { json } = await look("overview");
      expect(json["states"]).toContainEqual({ state: "failed", count: { value: 5, relation: "eq" } });
      expect(JSON.stringify(json)).not.toContain("theirs");
      expect(JSON.stringify((await look("pulse")).json)).toContain('"failed","count":{"value":5,');
      await fresh.close();
    });

    test("a message of another topic that stands in front is not told of", async () => {
      const [front = ""] = await bench.put("failed", 1, { topic: "payments", reason: "HTTP_400: card 4111" });
      const [behind = ""] = await bench.put("pending", 1, { topic: "mine.orders" });
      await bench.sql(`UPDATE local_message SET ordering_key = 'cust-1' WHERE id IN (${front}, ${behind})`);
      const told = async (token: string) => {
        const { text } = await bench.ask("message", { token, params: { id: behind } });
        return ["4111", `"behindId":"${front}"`].map((part) => text.includes(part));
      };
      expect([await told(bench.tokens.admin), await told(bench.tokens.limited)]).toEqual([
        [true, true],
        [false, false],
      ]);
    });

    test("of their topics they may do what their role may, and of others nothing", async () => {
      const [id = ""] = await bench.put("failed", 1, { topic: "mine.retried" });
      await bench.put("failed", 2, { topic: "others", reason: "HTTP_500: of others" });
      const token = bench.tokens.limited;
      const sent = { token, params: { id }, headers: { "if-match": await etagOf(bench, id) } };
      const away = await bench.ask("copy", { ...sent, body: { ...reason, key: "away", topic: "others" } });
      expect([away.status, away.json["topics"]]).toEqual([403, ["mine.*"]]);
      expect((await bench.ask("retry", { ...sent, body: reason })).status).toBe(200);
      const rule = { ...reason, scope: "topic", value: "mine.retried" };
      expect((await bench.ask("suspendScope", { token, body: rule })).status).toBe(200);
      expect((await bench.ask("resumeScope", { token, body: rule })).status).toBe(200);
      const mine = { kind: "retry", filter: { topic: "mine.orders" } };
      const previewed = await bench.ask("preview", { token, body: mine });
      const { id: preview } = previewed.json["operation"] as { readonly id: string };
      const started = await bench.ask("startOperation", { token, body: { ...reason, preview } });
      expect([previewed.status, started.status]).toEqual([200, 200]);
      const admin = bench.tokens.admin;
      const causes = await bench.ask("failures", { token: admin }, bench.another());
      const { fingerprint } = (causes.json["items"] as { topic: string; fingerprint: string }[]).find(
        ({ topic }) => topic === "others",
      ) ?? { fingerprint: "" };
      const ofOthers = await bench.ask("preview", { token, body: { kind: "retry", fingerprint } });
      expect(ofOthers.json["operation"]).toMatchObject({ total: { value: 0, relation: "eq" } });
      const theirs = await bench.ask("preview", { token: admin, body: { kind: "retry", filter: { topic: "others" } } });
      const { id: another } = theirs.json["operation"] as { readonly id: string };
      await bench.ask("startOperation", { token: admin, body: { ...reason, preview: another } });
      const listed = (await bench.ask("operations", { token })).json["items"] as { readonly id: string }[];
      expect([listed.map((each) => each.id)].flat()).toContain(preview);
      expect(listed.map((each) => each.id)).not.toContain(another);
      for (const name of ["operation", "cancelOperation"] as const) {
        const body = name === "operation" ? undefined : reason;
        const answer = await bench.ask(name, { token, params: { operation: another }, body });
        expect([name, answer.status]).toEqual([name, 404]);
      }
      expect((await bench.ask("startOperation", { token, body: { ...reason, preview: another } })).status).toBe(403);
      const { json: meta } = await bench.ask("meta", { token });
      expect(meta["principal"]).toMatchObject({ topics: ["mine.*"] });
      expect(meta["permissions"]).toEqual(NAMES.filter((name) => limitOf(ROUTES[name]) !== undefined));
      const { json: own } = await bench.ask("audit", { token });
      expect(new Set((own["items"] as { author: string }[]).map(({ author }) => author))).toEqual(
        new Set(["the limited"]),
      );
    });
  });

  describe("requests of other sites", () => {
    const FOREIGN: readonly Readonly<Record<string, string>>[] = [
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site", origin: "http://other.console.test" },
      { origin: "http://evil.test" },
      { origin: "null" },
      { cookie: "rowpost=whatever" },
    ];
    const unsafe = NAMES.filter((name) => ROUTES[name].method !== "GET");

    test.each(unsafe)("%s: refused, whatever they send, and nothing is changed", async (name) => {
      const request = await rightRequest(name);
      const before = await stateOf(request.id);
      for (const headers of FOREIGN) {
        const { json, status } = await bench.ask(name, {
          ...request,
          token: bench.tokens.admin,
          headers: { ...request.headers, ...headers },
        });
        expect([headers, status, json["type"]]).toEqual([headers, 403, "urn:rowpost:problem:cross-origin"]);
      }
      for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]) {
        if ((ROUTES[name] as Route).body === undefined) continue;
        const headers = { ...request.headers, "sec-fetch-site": "same-origin", "content-type": type };
        expect((await bench.ask(name, { ...request, token: bench.tokens.admin, headers })).status).toBe(415);
      }
      expect(await stateOf(request.id)).toEqual(before);
      const ours = { ...request.headers, "sec-fetch-site": "same-origin" };
      const { status } = await bench.ask(name, { ...request, token: bench.tokens.admin, headers: ours });
      expect(status).toBe(EXPECTED[name].status[3]);
    });
  });

  describe("alerts", () => {
    test("are told gravest first in the reader's language, and that nobody evaluates them", async () => {
      await bench.sql("DELETE FROM local_message_alert");
      const token = bench.tokens.reader;
      expect((await bench.ask("alerts", { token })).json).toMatchObject({ isEvaluated: false, items: [] });
      await seedAlerts(bench.database);
      const { json } = await bench.ask("alerts", { token, headers: { "accept-language": "zh" } });
      const items = json["items"] as Record<string, unknown>[];
      expect(json).toMatchObject({ isEvaluated: true, past: [{ rule: "no-relay" }] });
      expect(json["channels"]).toMatchObject([{ name: "ops", canTest: false, last: { ok: false } }]);
      expect(items.map(({ phase, rule }) => [rule, phase])).toEqual([
        ["oldest-due", "firing"],
        ["failed", "firing"],
        ["suspension", "waiting"],
      ]);
      expect(json["rules"]).toContainEqual({ rule: "failed", name: "消息发送失败" });
      expect(items[1]).toMatchObject({ title: "主题 orders 有 12 条消息发送失败", peak: "40" });
      const pulse = await bench.ask("pulse", { token }, bench.another());
      expect(pulse.json).toMatchObject({ sources: [{ alerts: { count: 2, severity: "critical" } }] });
      await bench.sql("UPDATE local_message_alert SET saved_at = NULL");
      expect((await bench.ask("alerts", { token })).json).toMatchObject({ isEvaluated: false });
      const stale = await bench.ask("pulse", { token }, bench.another());
      expect(JSON.stringify(stale.json)).not.toContain("alerts");
    });

    test("a silence is written with its audit, is seen at its alert, and ends once", async () => {
      await seedAlerts(bench.database);
      const token = bench.tokens.operator;
      const body = { ...reason, rule: "failed", subject: "orders", forMs: 60_000 };
      const { json: added } = await bench.ask("addSilence", { token, body });
      expect((await audit(1))[0]).toMatchObject({ action: "silence", author: "the operator", ...reason });
      const { json } = await bench.ask("alerts", { token });
      const silenced = (json["items"] as Record<string, unknown>[]).filter(({ silence }) => silence === added["id"]);
      expect(silenced.map(({ rule }) => rule)).toEqual(["failed"]);
      const badge = async () => {
        const fresh = bench.another();
        const { json: pulse } = await bench.ask("pulse", { token }, fresh);
        await fresh.close();
        return pulse;
      };
      expect(await badge()).toMatchObject({ sources: [{ alerts: { count: 1, severity: "critical" } }] });
      const all = { token, body: { ...reason, forMs: 60_000 } };
      const { json: every } = await bench.ask("addSilence", all);
      expect(JSON.stringify(await badge())).not.toContain("alerts");
      await bench.ask("endSilence", { token, body: reason, params: { silence: String(every["id"]) } });
      const end = { token, body: reason, params: { silence: String(added["id"]) } };
      const statuses = [(await bench.ask("endSilence", end)).status, (await bench.ask("endSilence", end)).status];
      expect(statuses).toEqual([200, 404]);
      expect((await audit(1))[0]).toMatchObject({ action: "silence end", result: "done", ...reason });
      const wrong = [
        { ...body, forMs: 8 * 86_400_000 },
        { ...body, forMs: 0 },
        { ...body, rule: "none" },
      ];
      for (const each of wrong) expect((await bench.ask("addSilence", { token, body: each })).status).toBe(400);
      expect((await bench.ask("endSilence", { ...end, params: { silence: "1\u0000" } })).status).toBe(400);
    });
  });

  describe("changes", () => {
    test("of two operators on one message the later one is told, with the message as it is", async () => {
      const [id = ""] = await bench.put("failed", 1, { reason: "HTTP_503: x" });
      const etag = await etagOf(bench, id);
      const sent = { params: { id }, headers: { "if-match": etag }, token: bench.tokens.operator };
      const both = await Promise.all([
        bench.ask("retry", { ...sent, body: { reason: "first" } }),
        bench.ask("suspend", { ...sent, token: bench.tokens.admin, body: { reason: "second" } }),
      ]);
      expect(new Set(both.map(({ status }) => status))).toEqual(new Set([200, 412]));
      const [won, lost] = both[0].status === 200 ? both : [both[1], both[0]];
      expect(lost.json).toMatchObject({ current: won.json["message"] });
      expect(lost.headers.get("etag")).toBe(won.headers.get("etag"));
      expect(won.headers.get("etag")).not.toBe(etag);
      const [conflict, done] = await audit(2);
      expect([conflict?.["result"], conflict?.["changed"]]).toEqual(["conflict", 0]);
      expect(done).toMatchObject({ result: "done", changed: 1, ids: [id], via: "api" });
      expect(done?.["before"]).toMatchObject([{ id, state: "failed", failReason: "HTTP_503: x" }]);
    });

    test("nothing is changed without a version, in a wrong state, or where there is no message", async () => {
      const [id = ""] = await bench.put("failed", 1);
      const ifMatch = { "if-match": await etagOf(bench, id) };
      const token = bench.tokens.operator;
      const tries: [RouteName, Sent, number, string][] = [
        ["retry", { params: { id }, body: reason }, 428, "precondition-required"],
        ["retry", { params: { id }, headers: { "if-match": "*" }, body: reason }, 400, "invalid-request"],
        ["retry", { params: { id }, headers: { "if-match": '"99"' }, body: reason }, 412, "precondition-failed"],
        ["resume", { params: { id }, headers: ifMatch, body: reason }, 409, "state-conflict"],
        ["retry", { params: { id }, headers: ifMatch, body: { reason: "  " } }, 400, "invalid-request"],
        ["retry", { params: { id }, headers: ifMatch, body: {} }, 400, "invalid-request"],
        ["retry", { params: { id }, headers: ifMatch, rawBody: "{" }, 400, "invalid-request"],
        [
          "suspend",
          { params: { id }, headers: ifMatch, body: { ...reason, until: "2020-01-01T00:00:00Z" } },
          400,
          "invalid-request",
        ],
        ["retry", { params: { id: "99999999" }, headers: ifMatch, body: reason }, 404, "not-found"],
        ["retry", { params: { id, source: "other" }, headers: ifMatch, body: reason }, 404, "not-found"],
      ];
      const before = await stateOf(id);
      for (const [name, sent, status, code] of tries) {
        const answer = await bench.ask(name, { ...sent, token });
        expect([name, answer.status, answer.json["type"]]).toEqual([name, status, `urn:rowpost:problem:${code}`]);
      }
      expect(await stateOf(id)).toEqual(before);
      const large = {
        params: { id },
        headers: ifMatch,
        token,
        rawBody: JSON.stringify({ reason: "x".repeat(1_048_577) }),
      };
      expect((await bench.ask("retry", large)).status).toBe(413);
    });

    test("a copy is written with what becomes of the original; a wrong one is refused in words, and nothing is left", async () => {
      const [id = "", other = ""] = await bench.put("failed", 2);
      const [row] = await bench.sql(`SELECT message_key FROM local_message WHERE id = ${other}`);
      const token = bench.tokens.admin;
      const headers = { "if-match": await etagOf(bench, id) };
      const body = { ...reason, key: `${id} again`, original: "suspend", body: '{"fine":true}' };
      const count = async () => Number((await bench.sql("SELECT count(*) AS n FROM local_message"))[0]?.["n"]);
      const before = [await stateOf(id), await count()];
      for (const [changed, pointer] of [
        [{ key: String(row?.["message_key"]) }, "/key"],
        [{ key: "x".repeat(256) }, "/key"],
        [{ original: "burn" }, "/original"],
        [{ headers: { a: 1 } }, "/headers/a"],
        [{ body: "{" }, undefined],
        [{ headers: { "rowpost-x": "1" } }, undefined],
        [{ topic: "" }, undefined],
      ] as const) {
        const answer = await bench.ask("copy", { params: { id }, headers, token, body: { ...body, ...changed } });
        const errors = answer.json["errors"] as { readonly pointer: string }[] | undefined;
        expect([changed, answer.status, errors?.[0]?.pointer]).toEqual([changed, 400, pointer]);
      }
      expect([await stateOf(id), await count()]).toEqual(before);
      const { json, status } = await bench.ask("copy", { params: { id }, headers, token, body });
      expect([status, json]).toMatchObject([
        200,
        { message: { state: "pending" }, original: { id, state: "suspended" } },
      ]);
      const { id: copyId } = json["message"] as { readonly id: string };
      const again = await bench.ask("copy", { params: { id }, headers, token, body: { ...body, key: "another" } });
      expect([again.status, (await audit(1))[0]?.["result"]]).toEqual([412, "conflict"]);
      const { json: left } = await bench.ask("message", { token, params: { id } });
      const { json: made } = await bench.ask("message", { token, params: { id: copyId } });
      expect([left["changes"], made["changes"]]).toMatchObject([
        [{ action: "copy", copyId }],
        [{ action: "copied", copyOf: id }],
      ]);
      const large = { ...body, original: "keep", key: "large", body: JSON.stringify("x".repeat(2_000_000)) };
      const ofCopy = { "if-match": await etagOf(bench, copyId) };
      expect((await bench.ask("copy", { params: { id: copyId }, headers: ofCopy, token, body: large })).status).toBe(
        200,
      );
    });

    test("an archived message is found, and cannot be changed", async () => {
      const [id = ""] = await bench.put("sent", 1);
      const token = bench.tokens.admin;
      const archived = await bench.ask("archive", {
        params: { id },
        token,
        body: reason,
        headers: { "if-match": await etagOf(bench, id) },
      });
      expect(archived.json).toMatchObject({ message: { id, archived: true } });
      const { json } = await bench.ask("lookup", { token, query: { word: id } });
      expect(json).toMatchObject({
        items: [{ id, archived: true }],
        searched: { complete: true, places: ["live", "archive"] },
      });
      const again = { params: { id }, token, body: reason, headers: { "if-match": await etagOf(bench, id) } };
      expect((await bench.ask("resend", again)).status).toBe(412);
    });
  });

  describe("many messages", () => {
    const preview = async (token: string, body: object) => {
      const answer = await bench.ask("preview", { token, body });
      return { ...answer, id: (answer.json["operation"] as { readonly id: string } | undefined)?.id ?? "" };
    };
    const ended = async (id: string): Promise<Record<string, unknown>> => {
      const look = () => bench.ask("operation", { token: bench.tokens.reader, params: { operation: id } });
      await expect
        .poll(async () => (await look()).json, { timeout: 20_000 })
        .toMatchObject({
          operation: { state: "done" },
        });
      return (await look()).json;
    };

    test("of one cause are retried on a preview, and what somebody changed meanwhile is told", async () => {
      const ids = await bench.put("failed", 3, { topic: "bulk", reason: "HTTP_503: host 8080 is away" });
      await bench.put("failed", 1, { topic: "bulk", reason: "HTTP_400: no" });
      const fresh = bench.another();
      const { json } = await bench.ask("failures", { token: bench.tokens.reader }, fresh);
      await fresh.close();
      const groups = json["items"] as { readonly topic: string; readonly code: string; readonly fingerprint: string }[];
      const cause = groups.find(({ code, topic }) => topic === "bulk" && code === "HTTP_503");
      const token = bench.tokens.operator;
      const found = await preview(token, { kind: "retry", fingerprint: cause?.fingerprint });
      expect(found.json).toMatchObject({
        operation: { state: "preview", total: { value: 3, relation: "eq" }, author: "the operator" },
        samples: ids.map((id) => ({ id, state: "failed" })),
      });
      const [first = ""] = ids;
      const headers = { "if-match": await etagOf(bench, first) };
      await bench.ask("suspend", { token, params: { id: first }, headers, body: reason });
      const start = { token, body: { ...reason, preview: found.id } };
      const foreign = await bench.ask("startOperation", { ...start, token: bench.tokens.admin });
      expect([foreign.status, foreign.json["type"]]).toEqual([410, "urn:rowpost:problem:preview-expired"]);
      // Fifty at once: one operation.
      const answers = await Promise.all(Array.from({ length: 50 }, () => bench.ask("startOperation", start)));
      expect(answers.map(({ json, status }) => [status, (json["operation"] as { id: string }).id])).toEqual(
        Array.from({ length: 50 }, () => [200, found.id]),
      );
      const { conflicts, operation } = await ended(found.id);
      expect(operation).toMatchObject({ changed: 2, left: 1, vanished: 0, total: { value: 3 } });
      expect(conflicts).toEqual([{ id: first, state: "suspended" }]);
      const listed = await bench.ask("operations", { token: bench.tokens.reader });
      expect((listed.json["items"] as unknown[])[0]).toMatchObject({ id: found.id });
      const again = { token, params: { operation: found.id }, body: reason };
      expect((await bench.ask("cancelOperation", again)).status).toBe(409);
      const entries = (await audit(10)).filter(({ details }) => JSON.stringify(details).includes(found.id));
      expect(entries.map(({ action, changed, result, via }) => [action, result, changed, via])).toEqual([
        ["many retry", "done", 0, "api"],
        ["retry", "done", 2, "api"],
        ["many retry", "begun", 0, "api"],
      ]);
    });

    test("of another process are not there: nobody is told of a change that this one does not make", async () => {
      await bench.put("failed", 1, { topic: "elsewhere" });
      const token = bench.tokens.operator;
      const filter = { topic: "elsewhere" };
      const other = bench.another();
      const { json } = await bench.ask("preview", { token, body: { kind: "retry", filter } }, other);
      const { id } = json["operation"] as { readonly id: string };
      const start = { token, body: { ...reason, preview: id } };
      const here = await bench.ask("startOperation", start);
      expect([here.status, here.json["detail"]]).toEqual([410, expect.stringContaining("another process")]);
      expect((await bench.ask("startOperation", start, other)).status).toBe(200);
      const look = await bench.ask("operation", { token, params: { operation: id } });
      expect([look.status, look.json["detail"]]).toEqual([404, expect.stringContaining("another one may have it")]);
      // It ends with its process, and the audit says how.
      await other.close();
      const [last] = await audit(1);
      expect(last).toMatchObject({ action: "many retry", details: { operation: id } });
      expect(["done", "cancelled"]).toContain(last?.["result"]);
    });

    test("are removed and sent again by admins alone, and never all of them at once", async () => {
      const filter = { topic: "bulk" };
      for (const kind of ["resend", "archive", "delete"]) {
        expect([kind, (await preview(bench.tokens.operator, { kind, filter })).status]).toEqual([kind, 403]);
        expect([kind, (await preview(bench.tokens.admin, { kind, filter })).status]).toEqual([kind, 200]);
      }
      for (const wrong of [
        { kind: "retry" },
        { kind: "retry", filter: {} },
        { kind: "retry", filter: { states: ["sent"] } },
        { kind: "resume", fingerprint: "0123456789abcdef" },
        { kind: "confirm", filter },
      ])
        expect([wrong, (await preview(bench.tokens.admin, wrong)).status]).toEqual([wrong, 400]);
      const { id } = await preview(bench.tokens.admin, { kind: "archive", filter: { states: ["failed"], ...filter } });
      const start = { body: { ...reason, preview: id } };
      expect((await bench.ask("startOperation", { ...start, token: bench.tokens.operator })).status).toBe(403);
      expect((await bench.ask("startOperation", { ...start, token: bench.tokens.admin })).status).toBe(200);
      expect(await ended(id)).toMatchObject({ operation: { changed: 1, left: 0 } });
    });

    test("are held back by a rule that says until when, and let go", async () => {
      const [id = ""] = await bench.put("suspended", 1, { topic: "held", reason: 'suspended by rule topic="held": x' });
      const token = bench.tokens.operator;
      const rule = { ...reason, scope: "topic", value: "held" };
      const until = new Date(Date.now() + 3_600_000).toISOString();
      expect((await bench.ask("suspendScope", { token, body: { ...rule, until } })).status).toBe(200);
      const past = { ...rule, until: "2020-01-01T00:00:00Z" };
      expect((await bench.ask("suspendScope", { token, body: past })).status).toBe(400);
      const fresh = bench.another();
      const { json } = await bench.ask("overview", { token }, fresh);
      await fresh.close();
      expect(json["suspensions"]).toMatchObject([{ scope: "topic", value: "held", author: "the operator" }]);
      const lifted = await bench.ask("resumeScope", { token, body: rule });
      expect(lifted.json).toEqual({ changed: 1 });
      expect(await stateOf(id)).toMatchObject({ state: 0 });
      await bench.sql(`UPDATE local_message SET retry_count = 1, next_retry_at = '2990-01-01' WHERE id = ${id}`);
      const reset = await bench.ask("resetBackoff", { token, body: { ...reason, topic: "held" } });
      expect(reset.json).toEqual({ changed: 1 });
    });
  });

  describe("looking", () => {
    test("pages go on where they ended, each message once; a cursor of another filter is refused", async () => {
      const ids = await bench.put("pending", 25, { topic: "pages" });
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const query: Record<string, string> = { topic: "pages", limit: "10", ...(cursor === null ? {} : { cursor }) };
        const { json } = await bench.ask("messages", { token: bench.tokens.reader, query });
        seen.push(...(json["items"] as { readonly id: string }[]).map(({ id }) => id));
        cursor = json["next"] as string | null;
        if (seen.length === 10) {
          const other = { topic: "other", limit: "10", cursor: cursor ?? "" };
          expect((await bench.ask("messages", { token: bench.tokens.reader, query: other })).status).toBe(400);
        }
      } while (cursor !== null);
      expect(seen).toEqual(ids.reverse());
    });

    test("failures of one cause are one group; the pulse is not sent again while nothing changes", async () => {
      for (const port of [8080, 8081, 9999])
        await bench.put("failed", 2, { topic: "causes", reason: `HTTP_503: host ${port} is away` });
      await bench.put("failed", 1, { topic: "causes", reason: "HTTP_400: no" });
      const fresh = bench.another();
      const { json } = await bench.ask("failures", { token: bench.tokens.reader }, fresh);
      await fresh.close();
      const groups = (
        json["items"] as { readonly topic: string; readonly code: string; readonly count: number }[]
      ).filter(({ topic }) => topic === "causes");
      expect(groups.map(({ code, count }) => [code, count])).toEqual([
        ["HTTP_503", 6],
        ["HTTP_400", 1],
      ]);
      const first = await bench.ask("pulse", { token: bench.tokens.reader });
      const headers = { "if-none-match": first.headers.get("etag") ?? "" };
      const second = await bench.ask("pulse", { token: bench.tokens.reader, headers });
      expect([second.status, second.text]).toEqual([304, ""]);
    });
  });

  describe("hostile data", () => {
    const HOSTILE = [
      "<img src=x onerror=alert(1)>",
      "'; DROP TABLE local_message; --",
      "\u202egnp\u202c \u0001\u007f\u009b",
      "消息🚀\ufffd%_!\\",
    ];

    test("is shown as it is, whatever stands in a row", async () => {
      const [first = ""] = await bench.put("failed", 1, { topic: "hostile" });
      const quoted = (text: string): string =>
        `'${text.replaceAll("'", "''").replaceAll("\\", bench.database.dialect === "mysql" ? "\\\\" : "\\")}'`;
      const last = "9223372036854775807";
      const always = bench.database.dialect === "postgres" ? " OVERRIDING SYSTEM VALUE" : "";
      const token = bench.tokens.admin;
      for (const [index, text] of HOSTILE.entries()) {
        const id = index === 0 ? last : String(BigInt(last) - BigInt(index));
        const value = quoted(text);
        const body = index === 0 ? quoted("😀".repeat(300_000)) : value;
        await bench.sql(`INSERT INTO local_message (id, message_type, message_key, topic, ordering_key, state, message_body, fail_reason, headers)${always}
VALUES (${id}, ${value}, ${value}, ${value}, ${value}, 3, ${body}, ${value}, ${value})`);
        const row = { type: text, key: text, topic: text, orderingKey: text, failReason: text };
        for (const name of ["message", "body", "rawBody", "keyQueue"] as const) {
          const { json, status } = await bench.ask(name, { token, params: { id } });
          expect([text, name, status]).toEqual([text, name, 200]);
          if (name === "message") expect(json).toMatchObject({ message: { id, ...row } });
          if (name === "body") expect(json).toMatchObject({ truncated: index === 0, headers: text });
        }
        const { json } = await bench.ask("messages", {
          token,
          query: { key: text, topic: text, orderingKey: text, reason: text },
        });
        expect(json).toMatchObject({ items: [{ id, ...row }], searched: { complete: true } });
        const headers = { "if-match": await etagOf(bench, id) };
        const changed = await bench.ask("retry", { token, params: { id }, headers, body: { reason: `${text}\ud800` } });
        expect(changed.json).toMatchObject({ message: { id, state: "pending" } });
        expect((await audit(1))[0]).toMatchObject({ ids: [id], reason: `${text}\ufffd`.trim() });
      }
      for (const name of ["messages", "failures", "overview", "topics", "audit"] as const)
        expect([name, (await bench.ask(name, { token })).status]).toEqual([name, 200]);
      await bench.sql(`DELETE FROM local_message WHERE id > ${first}`);
    });

    test("in a request is an answer of the 400s, never a failure", async () => {
      const token = bench.tokens.admin;
      for (const id of [
        "9223372036854775808",
        "99999999999999999999",
        "-1",
        "1e3",
        "0x10",
        "\u0000",
        "../1",
        "1 OR 1=1",
        "１",
      ])
        expect([id, (await bench.ask("message", { token, params: { id } })).status]).toEqual([id, 400]);
      const queries: [Record<string, string>, number][] = [
        [{ key: "\u0000" }, 400],
        [{ key: "\ud800" }, 200],
        [{ keyPrefix: "%" }, 200],
        [{ topic: "x".repeat(256) }, 400],
        [{ after: "yesterday" }, 400],
        [{ after: "2026-11-23" }, 400],
        [{ before: "9998-12-31T23:59:59.999+14:00", after: "1970-01-01T00:00:00Z" }, 200],
        [{ state: "gone" }, 400],
        [{ limit: "201" }, 400],
        [{ limit: "0" }, 400],
        [{ in: "archive,live" }, 200],
        [{ in: "files" }, 400],
        [{ in: "live,live", key: "nobody-has-this" }, 400],
        [{ cursor: "e30" }, 400],
        [{ cursor: "\u0000🚀" }, 400],
        [{ budgetMs: "1e9" }, 400],
      ];
      for (const [query, expected] of queries)
        expect([query, (await bench.ask("messages", { token, query })).status]).toEqual([query, expected]);
    });
  });
}
