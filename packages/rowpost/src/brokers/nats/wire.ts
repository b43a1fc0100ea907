import type { OutgoingMessage, PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";
import { headersOf, messageIdOf, subjectOf } from "./carry.ts";
import type { Settings } from "./options.ts";

export interface Wire {
  readonly subject: string;
  readonly headers: Uint8Array;
  readonly body: Uint8Array;
  readonly bytes: number;
}

export interface SubjectOfTopic {
  readonly subject: string;
  /** The stream that must take them. */
  readonly stream: string | undefined;
}

export function subjectFor(topic: string, settings: Settings): SubjectOfTopic | PublishFailed {
  try {
    const subject = subjectOf(topic, settings.subject(topic));
    return typeof subject === "string" ? { subject, stream: settings.stream(topic) } : subject;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return failed("message", "TOPIC_NOT_MAPPED", `the options subject or stream fail for topic ${topic}: ${reason}`, {
      retriable: true,
    });
  }
}

export function encode(
  message: OutgoingMessage,
  to: SubjectOfTopic,
  settings: Settings,
  maxPayload: number,
): Wire | PublishFailed {
  const headers = headersOf(message, {
    "Nats-Msg-Id": messageIdOf(message.type, message.key, settings.messageIdPrefix),
    "Nats-Expected-Stream": to.stream,
  });
  if ("scope" in headers) return headers;
  const body = typeof message.body === "string" ? Buffer.from(message.body) : message.body;
  const { maxBodyBytes = maxPayload } = settings;
  if (body.length > maxBodyBytes) {
    return tooLarge(`the body has ${body.length} bytes; at most ${maxBodyBytes} are allowed`);
  }
  const bytes = headers.length + body.length;
  // The server would end the connection and lose everything in flight.
  if (bytes > maxPayload) {
    const sizes = `body and headers have ${body.length} + ${headers.length} bytes`;
    return tooLarge(`${sizes}; the server takes at most ${maxPayload} (max_payload)`);
  }
  return { subject: to.subject, headers, body, bytes };
}

function tooLarge(reason: string): PublishFailed {
  return failed("message", "MESSAGE_TOO_LARGE", reason, { retriable: false });
}
