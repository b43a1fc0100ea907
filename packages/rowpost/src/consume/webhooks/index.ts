/** HTTP: requests that rowpost/http has sent, checked, handled and answered. */
import { decodeWebhookHeaders } from "../../brokers/http/headers.ts";
import { secretBytes, verifyWebhook, webhookId } from "../../brokers/http/signature.ts";
import type { ReceivedMessage } from "../../inbox/identity.ts";
import { fromWebhook } from "../../inbox/reading/webhook.ts";
import { HEADER_ORDERING_KEY } from "../../message/message.ts";
import { unlessAborted } from "../../runtime/abort.ts";
import { ConfigurationError } from "../../runtime/errors.ts";
import { wholeNumber } from "../../runtime/whole-number.ts";
import type { Transaction } from "../../transactions/executor.ts";
import { type Consumption, consumptionOf } from "../consumption.ts";
import { type DeliveredMessage, deliveredMessage } from "../message.ts";
import { type ConsumeOptions, type OwnKinds, type Park, workSettings } from "../options.ts";
import { createWork, type Verdict } from "../work.ts";
import { BodyError, bodyOfFetch, bodyOfNode, bodyOfOther, type NodeRequest, type NodeResponse } from "./body.ts";

/** A request with its body as it came: a parsed and printed JSON has other bytes. */
export interface WebhookDelivered {
  /** Names in lower case, as node:http has them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Bytes, or their text. */
  readonly body: string | Uint8Array;
}

/** What to answer. */
export interface WebhookAnswer {
  /** 204: handled, now or before. Others: docs/consumers.md. */
  readonly status: number;
  /** `retry-after` (seconds) and `content-type`, where there are any. */
  readonly headers: Readonly<Record<string, string>>;
  /** For people; empty with 204. */
  readonly body: string;
}

/** Options of {@link consumeWebhooks}. */
export interface WebhookConsumeOptions<Tx = Transaction> extends ConsumeOptions<WebhookDelivered, Tx> {
  /**
   * That of the sender, `whsec_…` or any text; several while it is being changed. `false`: nothing
   * is checked, and whoever can reach the endpoint can write messages.
   */
  readonly secret: string | readonly string[] | false;
  /** How far the sender's clock may be off, in milliseconds. Default 300,000. */
  readonly toleranceMs?: number | undefined;
  /** Larger bodies are answered 413. Default 4 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /**
   * `redeliver`, the default: 500, the sender's retry. `dead-letter`: 422, and the sender gives it
   * up at once. A request without identity is answered 422 in both.
   */
  readonly unhandled?: "redeliver" | "dead-letter" | Park<WebhookDelivered> | undefined;
}

/** Receives webhooks: for any framework. */
export interface Webhooks extends Consumption {
  /** For node:http and Express: `createServer(webhooks.listener)`, `app.post("/hooks", …)`. */
  readonly listener: (request: NodeRequest, response: NodeResponse) => void;
  /** For Hono and whoever has `Request` and `Response`: `(c) => webhooks.fetch(c.req.raw)`. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** For Fastify and all others: the request with its body as it came. Never rejects. */
  readonly receive: (request: {
    readonly headers: WebhookDelivered["headers"];
    /** Bytes or text; nothing is an empty one, and anything else is answered 500. */
    readonly body?: unknown;
  }) => Promise<WebhookAnswer>;
}

const KINDS: OwnKinds<WebhookConsumeOptions> = {
  secret: ["string", "array", "boolean"],
  toleranceMs: "number",
  maxBodyBytes: "number",
};

/** As many connections as a relay opens to one endpoint. */
const CONCURRENCY = 32;
/** Requests that wait for a handler, for each that runs; more are answered "later". */
const WAITING = 4;
const MAX_BODY_BYTES = 4_194_304;

/**
 * Makes a receiver. Each request is answered after the commit of what its message does. Throws
 * `ConfigurationError`.
 */
export function consumeWebhooks<Tx = Transaction>(options: WebhookConsumeOptions<Tx>): Webhooks {
  // The sender tries again, and knows better when.
  const settings = workSettings("consumeWebhooks", options, KINDS, { maxAttempts: 1, concurrency: CONCURRENCY });
  const isSigned = checkSecret(options.secret);
  const toleranceMs = wholeNumber("consumeWebhooks: toleranceMs", options.toleranceMs ?? 300_000, 0);
  const maxBodyBytes = wholeNumber("consumeWebhooks: maxBodyBytes", options.maxBodyBytes ?? MAX_BODY_BYTES, 1);
  const work = createWork(settings);
  const places = settings.concurrency * (1 + WAITING);
  let open = 0;

  function isGenuine({ body, headers }: WebhookDelivered): boolean {
    if (!isSigned) return true;
    const secret = options.secret as string | readonly string[];
    return verifyWebhook({ secret, headers, body, toleranceMs, nowMs: settings.clock.wallMs() });
  }

  async function handle(request: WebhookDelivered): Promise<WebhookAnswer> {
    if (!isGenuine(request)) return answer(401, "the signature is wrong, or too old");
    if (Buffer.byteLength(request.body) > maxBodyBytes) return TOO_LARGE;
    let message: DeliveredMessage | undefined;
    let unreadable: unknown;
    try {
      message = webhookMessage(request, settings.identity?.(request));
    } catch (error) {
      unreadable = error;
    }
    if (message !== undefined && isSigned && settings.identity === undefined && !isItsId(message))
      return answer(401, "webhook-id is not that of type and key");
    const verdict = await work.handle({
      raw: request,
      read() {
        if (message === undefined) throw unreadable;
        return message;
      },
      stays: "never",
      tell: () => undefined,
    });
    // Sent again it has none either. One that could not be parked may be the next time.
    if (message === undefined && verdict === "redeliver" && settings.unhandled === "redeliver")
      return answerOf("dead-letter");
    return answerOf(verdict);
  }

  /** Counted before its body is there: what is read, waits and runs is what fills the memory. */
  async function respond(read: () => Promise<WebhookDelivered> | WebhookDelivered): Promise<WebhookAnswer> {
    if (work.closing.aborted || open >= places) return LATER;
    open += 1;
    try {
      return await unlessAborted(work.abandoned, handle(await read()), () => new Abandoned());
    } catch (error) {
      if (error instanceof Abandoned) return LATER;
      if (!(error instanceof BodyError)) throw error;
      if (error.status === 500) settings.logger.error("a webhook came without its bytes", { error });
      return answer(error.status, error.message);
    } finally {
      open -= 1;
    }
  }

  return {
    ...consumptionOf(() => work.drain()),
    receive: ({ body, headers }) => respond(() => ({ headers, body: bodyOfOther(body) })),
    listener(request, response) {
      const body = async (): Promise<WebhookDelivered> => ({
        headers: request.headers,
        body: await bodyOfNode(request, maxBodyBytes),
      });
      respond(body).then(
        (given) => response.writeHead(given.status, given.headers).end(given.body),
        // The client has gone in the middle of its body.
        () => response.destroy(),
      );
    },
    async fetch(request) {
      const body = async (): Promise<WebhookDelivered> => ({
        headers: Object.fromEntries(request.headers),
        body: await bodyOfFetch(request, maxBodyBytes),
      });
      const { body: text, headers, status } = await respond(body);
      return new Response(status === 204 ? null : text, { status, headers: { ...headers } });
    },
  };
}

/** The handler runs on, and nobody waits for it. */
class Abandoned extends Error {}

function checkSecret(secret: unknown): boolean {
  if (secret === false) return false;
  const all = [secret].flat();
  if (all.length === 0 || all.some((each) => typeof each !== "string")) {
    throw new ConfigurationError(
      "consumeWebhooks takes { secret }, that of the sender; secret: false where something else lets nobody else in",
    );
  }
  for (const each of all) secretBytes(each as string);
  return true;
}

/**
 * Type and key stand in headers, which are not signed; `webhook-id`, which is made of them, is
 * signed. Without this comparison a request that was seen could be sent again as another message.
 */
function isItsId({ id, key, type }: DeliveredMessage): boolean {
  return id === webhookId(type, key);
}

/** Throws `MissingIdentityError`. */
function webhookMessage(request: WebhookDelivered, own: ReceivedMessage | undefined): DeliveredMessage {
  const identity = own ?? fromWebhook(request.headers);
  const headers = decodeWebhookHeaders(request.headers);
  return deliveredMessage({
    identity: { topic: headers["rowpost-topic"], ...identity },
    headers,
    body: request.body,
    orderingKey: headers[HEADER_ORDERING_KEY],
  });
}

function answerOf(verdict: Verdict): WebhookAnswer {
  if (verdict === "handled") return { status: 204, headers: {}, body: "" };
  if (verdict === "stopped") return LATER;
  return verdict === "dead-letter"
    ? answer(422, "this message is not wanted here: it has no identity, or cannot be handled")
    : answer(500, "the message was not handled; send it again");
}

function answer(status: number, body: string, headers: Readonly<Record<string, string>> = {}): WebhookAnswer {
  return { status, headers: { "content-type": "text/plain; charset=utf-8", ...headers }, body };
}

/** A relay counts no attempt for this. */
const LATER = answer(503, "not now; send it again", { "retry-after": "1" });
const TOO_LARGE = answer(413, "the body is too large");
