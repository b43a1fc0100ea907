/** HTTP: requests of the rowpost/http adapter. */
import { decodeWebhookHeaders } from "../../brokers/http/headers.ts";
import type { ReceivedMessage } from "../identity.ts";
import { identityIn, textOf } from "./headers.ts";

/** `request.headers` of node:http, Express and Fastify, or `Headers` of fetch and Hono. */
export type WebhookHeaders =
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | Iterable<readonly [string, string]>;

/**
 * Identity of a request. `id` is its webhook-id. Check the signature first: anyone who can reach
 * the endpoint can write these headers. Throws `MissingIdentityError`.
 */
export function fromWebhook(headers: WebhookHeaders): ReceivedMessage {
  const plain = Symbol.iterator in headers ? Object.fromEntries(headers) : headers;
  return identityIn("this request", decodeWebhookHeaders(plain), { id: textOf(plain["webhook-id"]) });
}
