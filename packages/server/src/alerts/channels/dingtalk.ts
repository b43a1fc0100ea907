/**
 * A custom robot of DingTalk. With a secret, the URL carries a timestamp in ms and the signature:
 * base64 of HMAC-SHA256 with the secret as key over `timestamp\nsecret`, percent-encoded once. 20
 * messages a minute; beyond that DingTalk refuses for ten minutes.
 */
import { createHmac } from "node:crypto";
import { type ChannelKind, JSON_HEADERS, plainMarkdown, refusalByCode } from "./channel.ts";

export function signDingtalk(timestamp: string, secret: string): string {
  return createHmac("sha256", secret).update(`${timestamp}\n${secret}`).digest("base64");
}

export const dingtalk: ChannelKind = {
  mostBytes: 15_000,
  perMinute: 18,
  plain: plainMarkdown,
  request({ text, title }, { keyword, nowMs, secret, url }) {
    const timestamp = String(nowMs);
    const to = new URL(url);
    if (secret !== undefined) {
      to.searchParams.set("timestamp", timestamp);
      to.searchParams.set("sign", signDingtalk(timestamp, secret));
    }
    // With "custom keywords" security, messages without the word are refused.
    const body = [`### ${plainMarkdown(title)}`, text, ...(keyword === undefined ? [] : [keyword])].join("\n\n");
    return {
      url: to.href,
      headers: JSON_HEADERS,
      body: JSON.stringify({ msgtype: "markdown", markdown: { title, text: body }, at: { isAtAll: false } }),
    };
  },
  refusal: (response) => refusalByCode(response, { code: "errcode", text: "errmsg" }),
};
