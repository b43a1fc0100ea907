import { HEADER_ORDERING_KEY } from "../../message/message.ts";
import type { OutgoingMessage, PublishFailed } from "../broker.ts";
import type { Outcome } from "../publishing/call.ts";
import { failed } from "../publishing/failures.ts";
import type { Exchange, ExchangeRequest } from "./exchange.ts";
import { encodeHeaders, sameNames } from "./headers.ts";
import { outcomeOfAnswer } from "./response.ts";
import type { HttpSettings } from "./settings.ts";
import { sign, webhookId } from "./signature.ts";
import type { Target } from "./target.ts";

export function requestOf(
  message: OutgoingMessage,
  target: Target,
  settings: HttpSettings,
): ExchangeRequest | PublishFailed {
  const { maxBodyBytes, timeoutMs, clock } = settings;
  const body = typeof message.body === "string" ? Buffer.from(message.body) : message.body;
  if (maxBodyBytes !== undefined && body.length > maxBodyBytes) {
    const reason = `body of ${body.length} bytes, the limit is ${maxBodyBytes}`;
    return failed("message", "BODY_TOO_LARGE", reason, { retriable: false });
  }
  const same = sameNames(message.headers);
  if (same !== undefined) {
    const reason = `the headers ${same.join(" and ")} are one to HTTP, which knows no case in names, and their values differ`;
    return failed("message", "AMBIGUOUS_HEADERS", reason, { retriable: false });
  }
  const id = webhookId(message.type, message.key);
  const headers = requestHeaders(message, { id, body, target, settings, nowMs: clock.wallMs() });
  return { target, method: "POST", headers, body, timeoutMs };
}

export function outcomeOf(
  exchange: Exchange,
  { type, key }: OutgoingMessage,
  { label }: Target,
  { awayScope, receiptHeader, clock }: HttpSettings,
): Outcome {
  if (!exchange.answered) return failed(exchange.handedOver ? "unknown" : awayScope, exchange.code, exchange.reason);
  return outcomeOfAnswer(exchange.answer, {
    label,
    receiptHeader,
    webhookId: webhookId(type, key),
    nowMs: clock.wallMs(),
  });
}

interface HeaderParts {
  readonly id: string;
  readonly body: Uint8Array;
  readonly target: Target;
  readonly settings: HttpSettings;
  readonly nowMs: number;
}

function requestHeaders(message: OutgoingMessage, parts: HeaderParts): Record<string, string | number> {
  const { id, body, target, settings, nowMs } = parts;
  const { topic, orderingKey } = message;
  const about = {
    ...message.headers,
    "rowpost-topic": topic,
    ...(orderingKey !== undefined && { [HEADER_ORDERING_KEY]: orderingKey }),
  };
  const timestamp = String(Math.floor(nowMs / 1_000));
  return {
    ...encodeHeaders(about, settings.fixedNames),
    "content-type": message.contentType,
    "content-length": body.length,
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    ...(settings.secrets.length > 0 && { "webhook-signature": sign({ id, timestamp, body }, settings.secrets) }),
    ...target.authorization,
    ...settings.fixedHeaders,
  };
}
