/**
 * A custom bot of Feishu or Lark. With a secret, the body carries a timestamp in seconds and the
 * signature: base64 of HMAC-SHA256 with `timestamp\nsecret` as key over an empty text.
 */
import { createHmac } from "node:crypto";
import { type ChannelKind, JSON_HEADERS, plainMarkdown, refusalByCode } from "./channel.ts";

export function signFeishu(timestamp: string, secret: string): string {
  return createHmac("sha256", `${timestamp}\n${secret}`).digest("base64");
}

const COLORS = { info: "blue", warning: "orange", critical: "red" } as const;

export const feishu: ChannelKind = {
  mostBytes: 15_000,
  perMinute: 60,
  plain: plainMarkdown,
  request({ isResolved, severity, text, title }, { keyword, nowMs, secret, url }) {
    const timestamp = String(Math.floor(nowMs / 1_000));
    const content = keyword === undefined ? text : `${text}\n\n${keyword}`;
    const card = {
      header: { template: isResolved ? "green" : COLORS[severity], title: { tag: "plain_text", content: title } },
      elements: [{ tag: "markdown", content }],
    };
    const signed = secret === undefined ? {} : { timestamp, sign: signFeishu(timestamp, secret) };
    return { url, headers: JSON_HEADERS, body: JSON.stringify({ ...signed, msg_type: "interactive", card }) };
  },
  refusal: (response) => refusalByCode(response, { code: "code", text: "msg" }),
};
