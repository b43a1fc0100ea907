import { describe, expect, test } from "vitest";
import type { Outgoing } from "./channels/channel.ts";
import { dingtalk, signDingtalk } from "./channels/dingtalk.ts";
import { feishu, signFeishu } from "./channels/feishu.ts";
import { CHANNEL_KINDS } from "./channels/index.ts";
import { wecom } from "./channels/wecom.ts";
import { cutToBytes } from "./texts.ts";

const NOTICE: Outgoing = {
  id: "a1",
  source: "main",
  alerts: [],
  title: "标题".repeat(60),
  text: "消息".repeat(2_000),
  severity: "critical",
  isResolved: false,
};
const TO = { url: "https://example.org/send?key=k", secret: "SEC1", keyword: "告警", nowMs: 1_700_000_000_123 };

describe("channels", () => {
  test("DingTalk signs milliseconds with the secret as key, percent-encoded once", () => {
    // Computed by another implementation of HMAC.
    const sign = "LtwRhnP04fXYO09uCgUpnz/3dV0OxcApXKnTCuuaVBQ=";
    expect(signDingtalk("1700000000123", "SEC1")).toBe(sign);
    const { searchParams } = new URL(dingtalk.request(NOTICE, TO).url);
    expect([searchParams.get("timestamp"), searchParams.get("sign")]).toEqual(["1700000000123", sign]);
  });

  test("Feishu signs nothing, with seconds and secret as key", () => {
    const sign = "s3Va4ru9IQUY6HTJcYx7OEVyXl0V0S/y32v4ZbfOHCI=";
    expect(signFeishu("1700000000", "SEC1")).toBe(sign);
    expect(JSON.parse(feishu.request(NOTICE, TO).body)).toMatchObject({ timestamp: "1700000000", sign });
  });

  test("WeCom gets 4,096 bytes at most, whole characters, with the keyword", () => {
    const { markdown } = JSON.parse(wecom.request(NOTICE, TO).body);
    expect(Buffer.byteLength(markdown.content)).toBeLessThanOrEqual(4_096);
    expect(markdown.content).not.toContain("\ufffd");
    expect(markdown.content.endsWith("告警")).toBe(true);
  });

  test.each(["dingtalk", "wecom", "feishu"] as const)("%s has taken a notice only when its body says so", (type) => {
    const name = type === "feishu" ? "code" : "errcode";
    const answer = (status: number, body: string) => CHANNEL_KINDS[type].refusal({ status, body });
    expect(answer(200, JSON.stringify({ [name]: 0 }))).toBeUndefined();
    expect(answer(200, JSON.stringify({ [name]: 310000 }))).toContain("310000");
    for (const body of ["", "{}", "ok", "null"]) expect(answer(200, body)).toBeDefined();
    expect(answer(429, JSON.stringify({ [name]: 0 }))).toBeDefined();
  });

  test("a text is cut between characters at any number of bytes", () => {
    for (let most = 3; most < 40; most += 1) {
      const cut = cutToBytes("a消息😀b".repeat(5), most);
      expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(most);
      expect(cut).not.toContain("\ufffd");
    }
  });
});
