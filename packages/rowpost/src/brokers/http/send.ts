/** One message as a request, and what its answer, or its breaking, means. */
import { describeError } from "../../runtime/errors.ts";
import type { OutgoingMessage, PublishResult } from "../broker.ts";
import type { Exchange, ExchangeRequest } from "./exchange.ts";
import { encodeHeaders } from "./headers.ts";
import { failure, resultOfAnswer } from "./response.ts";
import type { HttpSettings } from "./settings.ts";
import { sign, webhookId } from "./signature.ts";
import type { Target } from "./target.ts";

/** Sends a message to its endpoint. Never rejects. `exchange` runs the request. */
export async function sendMessage(
  message: OutgoingMessage,
  target: Target,
  settings: HttpSettings,
  exchange: (request: ExchangeRequest) => Promise<Exchange>,
): Promise<PublishResult> {
  const { maxBodyBytes, timeoutMs, receiptHeader, clock } = settings;
  const body = typeof message.body === "string" ? Buffer.from(message.body) : message.body;
  if (maxBodyBytes !== undefined && body.length > maxBodyBytes) {
    return failure("message", "BODY_TOO_LARGE", `body of ${body.length} bytes, the limit is ${maxBodyBytes}`);
  }
  const id = webhookId(message.type, message.key);
  const headers = requestHeaders(message, { id, body, target, settings, nowMs: clock.wallMs() });
  try {
    const outcome = await exchange({ target, method: "POST", headers, body, timeoutMs });
    if (outcome.answered) {
      return resultOfAnswer(outcome.answer, {
        label: target.label,
        webhookId: id,
        receiptHeader,
        nowMs: clock.wallMs(),
      });
    }
    return failure(outcome.handedOver ? "unknown" : settings.awayScope, outcome.code, outcome.reason);
  } catch (error) {
    // node:http refuses a request that it cannot write, before anything is sent.
    return failure("message", "INVALID_REQUEST", describeError(error));
  }
}

/** What the headers of a request are made of. */
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
    ...(orderingKey !== undefined && { "rowpost-ordering-key": orderingKey }),
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
