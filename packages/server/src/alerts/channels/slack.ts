/** An incoming webhook of Slack: its address is its secret; a message a second. */
import { type ChannelKind, JSON_HEADERS } from "./channel.ts";

/** What Slack reads as markup, mentions too. */
function escapeSlack(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** A section takes 3,000 characters; of bytes there are never fewer. */
const MOST_BYTES = 2_900;

export const slack: ChannelKind = {
  mostBytes: MOST_BYTES,
  perMinute: 30,
  plain: escapeSlack,
  request({ text, title }, { url }) {
    const header = { type: "header", text: { type: "plain_text", text: Array.from(title).slice(0, 150).join("") } };
    const section = { type: "section", text: { type: "mrkdwn", text } };
    // What phones show, and who cannot see blocks hears.
    return { url, headers: JSON_HEADERS, body: JSON.stringify({ text: title, blocks: [header, section] }) };
  },
  refusal: ({ body, status }) => (status === 200 && body.trim() === "ok" ? undefined : `HTTP ${status}: ${body}`),
};
