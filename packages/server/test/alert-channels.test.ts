/** Channels against servers that answer as theirs do, and as they should not. */
import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { silentMetrics } from "rowpost";
import { afterEach, beforeEach, expect, test } from "vitest";
import { signDingtalk } from "../src/alerts/channels/dingtalk.ts";
import { signFeishu } from "../src/alerts/channels/feishu.ts";
import { createChannel } from "../src/alerts/channels/send.ts";
import { type AlertConfig, readAlertFile } from "../src/alerts/config.ts";
import { deliver } from "../src/alerts/delivery.ts";
import { type AlertsState, NO_ALERTS, type NoticeItem } from "../src/alerts/state.ts";
import { temporaryFile } from "./command.ts";

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
const ITEM: NoticeItem = {
  rule: "failed",
  subject: "orders",
  severity: "critical",
  kind: "firing",
  since: "2026-11-24T03:00:00.000Z",
  forMs: 60_000,
  value: 7,
  peak: 7,
  facts: {},
};
const NOTICE = { id: "alert_1", at: "2026-11-24T03:01:00.000Z", items: [ITEM] };

interface Asked {
  readonly url: URL;
  readonly body: Record<string, unknown>;
}

let server: Server;
let asked: Asked[];
let answer: (request: Asked, response: ServerResponse) => void;
let base: string;
let files: Awaited<ReturnType<typeof temporaryFile>>;

beforeEach(async () => {
  files = await temporaryFile();
  asked = [];
  server = createServer((request: IncomingMessage, response) => {
    let text = "";
    request.on("data", (part) => {
      text += String(part);
    });
    request.on("end", () => {
      const one = { url: new URL(request.url ?? "/", base), body: JSON.parse(text === "" ? "{}" : text) };
      asked.push(one);
      answer(one, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await files.remove();
});

function configOf(channels: object, rules: object = {}, more: object = {}): AlertConfig {
  const path = `${files.file}.json`;
  writeFileSync(path, JSON.stringify({ channels, rules, ...more }));
  return readAlertFile(path, { URL: `${base}/send?access_token=0123456789abcdef0123`, SECRET: "SEC-0123456789" });
}

function channelsOf({ channels, secrets }: AlertConfig, answerMs?: number) {
  return channels.map((config) =>
    createChannel({ config, consoleUrl: undefined, secrets, monotonicMs: () => performance.now(), answerMs }),
  );
}

async function sendTo(type: string) {
  const [channel] = channelsOf(configOf({ night: { type, url: "env:URL", secret: "env:SECRET", language: "zh" } }));
  return await channel?.send(NOTICE, "main");
}

function send(response: ServerResponse, value: object): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value));
}

const json = (value: object) => (_: Asked, response: ServerResponse) => send(response, value);

test("DingTalk: signed in the address; taken only with errcode 0", async () => {
  answer = ({ url }, response) => {
    const timestamp = url.searchParams.get("timestamp") ?? "";
    const isSigned = url.searchParams.get("sign") === signDingtalk(timestamp, "SEC-0123456789");
    send(response, isSigned ? { errcode: 0, errmsg: "ok" } : { errcode: 310_000, errmsg: "sign not match" });
  };
  expect(await sendTo("dingtalk")).toMatchObject({ ok: true });
  expect(asked[0]?.body).toMatchObject({ msgtype: "markdown", markdown: { text: expect.stringContaining("orders") } });
  answer = json({ errcode: 130_101, errmsg: "send too fast" });
  expect(await sendTo("dingtalk")).toMatchObject({ ok: false, answer: expect.stringContaining("130101") });
});

test("Feishu: signed in the body, in seconds; taken only with code 0", async () => {
  answer = ({ body }, response) => {
    const isSigned = body["sign"] === signFeishu(String(body["timestamp"]), "SEC-0123456789");
    send(response, isSigned ? { code: 0 } : { code: 19_021, msg: "sign match fail" });
  };
  expect(await sendTo("feishu")).toMatchObject({ ok: true });
  expect(String(asked[0]?.body["timestamp"])).toHaveLength(10);
  answer = json({ code: 11_232, msg: "frequency limited" });
  expect(await sendTo("feishu")).toMatchObject({ ok: false, answer: expect.stringContaining("11232") });
});

test("WeCom and Slack: taken only when they say so", async () => {
  answer = json({ errcode: 0 });
  expect(await sendTo("wecom")).toMatchObject({ ok: true });
  answer = json({ errcode: 45_009, errmsg: "api freq out of limit" });
  expect(await sendTo("wecom")).toMatchObject({ ok: false });
  answer = (_, response) => response.writeHead(200).end("ok");
  expect(await sendTo("slack")).toMatchObject({ ok: true });
  expect(asked.at(-1)?.body).toMatchObject({
    text: expect.any(String),
    blocks: [{ type: "header" }, { type: "section" }],
  });
  answer = (_, response) => response.writeHead(200).end("invalid_payload");
  expect(await sendTo("slack")).toMatchObject({ ok: false });
});

test.each(["dingtalk", "feishu", "wecom", "slack", "webhook"])(
  "%s: too many, a redirect and a cut connection are told without the address",
  async (type) => {
    answer = (_, response) =>
      response.writeHead(429, { "retry-after": "1" }).end(`${base}/send?access_token=0123456789abcdef0123`);
    const refused = await sendTo(type);
    expect(refused?.ok).toBe(false);
    expect(refused?.answer).not.toContain("0123456789abcdef");
    const before = asked.length;
    answer = (_, response) => response.writeHead(302, { location: `${base}/elsewhere` }).end();
    expect(await sendTo(type)).toMatchObject({ ok: false });
    expect(asked.slice(before).map(({ url }) => url.pathname)).toEqual(["/send"]);
    answer = (_, response) => response.destroy();
    const cut = await sendTo(type);
    expect(cut).toMatchObject({ ok: false, answer: expect.stringContaining("the connection failed") });
    expect(cut?.answer).not.toContain("127.0.0.1");
  },
);

test.each(["refuses", "never answers"])(
  "a channel that %s gives a notice up after three times; the others have it",
  async (how) => {
    answer = ({ url }, response) => {
      const isBad = url.pathname === "/night";
      if (!isBad || how === "refuses") response.writeHead(isBad ? 503 : 204).end();
    };
    const config = configOf({
      night: { type: "webhook", url: `${base}/night` },
      day: { type: "webhook", url: `${base}/day` },
    });
    const parts = { source: "main", channels: channelsOf(config, 200), logger: SILENT, metrics: silentMetrics };
    const due = { tries: 0, nextMs: 0 };
    let state: AlertsState = { ...NO_ALERTS, notices: [{ ...NOTICE, deliveries: { night: due, day: due } }] };
    const steps: string[][] = [];
    for (let turn = 0; turn < 5; turn += 1) {
      state = await deliver(state, parts);
      state = { ...state, clockMs: state.clockMs + 60_000 };
      steps.push(
        asked
          .splice(0)
          .map(({ url }) => url.pathname)
          .sort(),
      );
    }
    expect(steps).toEqual([["/day", "/night"], ["/night"], ["/night"], [], []]);
    expect(state.notices).toEqual([]);
  },
);

test("options that are gone are refused with what to use instead", () => {
  const night = { type: "webhook", url: `${base}/night`, fallback: "pager" };
  expect(() => configOf({ night })).toThrow(/channels\.night\.fallback: is gone; give both channels the same "from"/);
  expect(() => configOf({}, {}, { deadman: `${base}/alive` })).toThrow(/deadman: is gone; .*RowpostAbsent/);
});

test("findings of the doctor that are not told are named by their ids", () => {
  expect(configOf({}, { doctor: { except: ["D204"] } }).rules.doctor).toEqual({ forMs: 0, except: ["D204"] });
  expect(configOf({}, { "queue-lag": { over: "2m" } }).rules["queue-lag"]).toMatchObject({ overMs: 120_000 });
  for (const except of ["D204", ["autovacuum"]])
    expect(() => configOf({}, { doctor: { except } })).toThrow(/ rules\.doctor/);
});
