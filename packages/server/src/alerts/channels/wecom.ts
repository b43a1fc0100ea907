/**
 * A group robot of WeCom. The key in its address is its secret. Markdown of up to 4,096 bytes of
 * UTF-8, 20 messages a minute.
 */
import { cutToBytes } from "../texts.ts";
import { type ChannelKind, JSON_HEADERS, plainMarkdown, refusalByCode } from "./channel.ts";

const MOST_BYTES = 4_096;

export const wecom: ChannelKind = {
  // The rest is for the title.
  mostBytes: 3_800,
  perMinute: 18,
  plain: plainMarkdown,
  request({ text, title }, { keyword, url }) {
    const end = keyword === undefined ? "" : `\n\n${keyword}`;
    const whole = cutToBytes(`**${plainMarkdown(title)}**\n\n${text}`, MOST_BYTES - Buffer.byteLength(end)) + end;
    return { url, headers: JSON_HEADERS, body: JSON.stringify({ msgtype: "markdown", markdown: { content: whole } }) };
  },
  refusal: (response) => refusalByCode(response, { code: "errcode", text: "errmsg" }),
};
