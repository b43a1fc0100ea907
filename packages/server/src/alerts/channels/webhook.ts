/**
 * JSON with the headers of the Standard Webhooks specification. Receivers verify it with
 * `verifyWebhook` of `rowpost/http`, and recognize repeated attempts by `webhook-id`.
 */
import { signWebhook } from "rowpost/http";
import { type ChannelKind, JSON_HEADERS } from "./channel.ts";

export const webhook: ChannelKind = {
  mostBytes: 15_000,
  perMinute: 60,
  plain: (text) => text,
  request({ alerts, id, severity, source, text, title }, { nowMs, secret, url }) {
    const body = JSON.stringify({ type: "rowpost.alert", source, severity, title, text, alerts });
    const timestamp = String(Math.floor(nowMs / 1_000));
    const signature = secret === undefined ? {} : { "webhook-signature": signWebhook({ id, timestamp, body, secret }) };
    return { url, headers: { ...JSON_HEADERS, "webhook-id": id, "webhook-timestamp": timestamp, ...signature }, body };
  },
  refusal: ({ body, status }) => (status >= 200 && status < 300 ? undefined : `HTTP ${status}: ${body}`),
};
