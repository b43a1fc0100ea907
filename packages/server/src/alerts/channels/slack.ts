/** An incoming webhook of Slack. Its address is its secret. One message a second. */
import { type ChannelKind, JSON_HEADERS } from "./channel.ts";

function escapeSlack(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** A section holds 3,000 characters, which never have fewer bytes. */
const MOST_BYTES = 2_900;

export const slack: ChannelKind = {
  mostBytes: MOST_BYTES,
  perMinute: 30,
  plain: escapeSlack,
  request({ text, title }, { url }) {
    const header = { type: "header", text: { type: "plain_text", text: Array.from(title).slice(0, 150).join("") } };
    const section = { type: "section", text: { type: "mrkdwn", text } };
    // Shown by phones, and read by screen readers instead of blocks.
    return { url, headers: JSON_HEADERS, body: JSON.stringify({ text: title, blocks: [header, section] }) };
  },
  refusal: ({ body, status }) => (status === 200 && body.trim() === "ok" ? undefined : `HTTP ${status}: ${body}`),
};
