/** HTTP: verifies, handles and answers requests sent by rowpost/http. */
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

/** A request with its raw body. A JSON body that was parsed and printed again has other bytes. */
export interface WebhookDelivered {
  /** Names in lower case, as node:http has them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Bytes or text. */
  readonly body: string | Uint8Array;
}

/** The answer to send. */
export interface WebhookAnswer {
  /** 204: handled, now or earlier. Others: docs/consumers.md. */
  readonly status: number;
  /** `retry-after` (seconds) and `content-type`, if any. */
  readonly headers: Readonly<Record<string, string>>;
  /** Text for people; empty with 204. */
  readonly body: string;
}

/** Options of {@link consumeWebhooks}. */
export interface WebhookConsumeOptions<Tx = Transaction> extends ConsumeOptions<WebhookDelivered, Tx> {
  /**
   * The sender's secret, `whsec_…` or any text; several during a rotation. `false`: no
   * verification, so that everyone who can reach the endpoint can send messages.
   */
  readonly secret: string | readonly string[] | false;
  /** Largest difference to the sender's clock, in ms. Default 300,000. */
  readonly toleranceMs?: number | undefined;
  /** Larger bodies are answered 413. Default 4 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /**
   * `redeliver`, the default: 500, and the sender retries. `dead-letter`: 422, and the sender gives
   * up at once. A request without identity always gets 422.
   */
  readonly unhandled?: "redeliver" | "dead-letter" | Park<WebhookDelivered> | undefined;
}

/** Receives webhooks, in any framework. */
export interface Webhooks extends Consumption {
  /** For node:http and Express: `createServer(webhooks.listener)`, `app.post("/hooks", …)`. */
  readonly listener: (request: NodeRequest, response: NodeResponse) => void;
  /** For Hono and others with `Request` and `Response`: `(c) => webhooks.fetch(c.req.raw)`. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** For Fastify and others: a request with its raw body. Never rejects. */
  readonly receive: (request: {
    readonly headers: WebhookDelivered["headers"];
    /** Bytes or text. A missing body is empty; anything else is answered 500. */
    readonly body?: unknown;
  }) => Promise<WebhookAnswer>;
}

const KINDS: OwnKinds<WebhookConsumeOptions> = {
  secret: ["string", "array", "boolean"],
  toleranceMs: "number",
  maxBodyBytes: "number",
};

/** As many as a relay's connections to one endpoint. */
const CONCURRENCY = 32;
/** Waiting requests for each running handler; beyond that the answer is "later". */
const WAITING = 4;
const MAX_BODY_BYTES = 4_194_304;

/**
 * Creates a receiver. It answers each request after the commit of its message. Throws
 * `ConfigurationError`.
 */
export function consumeWebhooks<Tx = Transaction>(options: WebhookConsumeOptions<Tx>): Webhooks {
  // The sender retries, and knows better when.
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
    // A retry would have no identity either. One that could not be parked may be parked next time.
    if (message === undefined && verdict === "redeliver" && settings.unhandled === "redeliver")
      return answerOf("dead-letter");
    return answerOf(verdict);
  }

  /**
   * Counted before the body is read, because bodies being read, waiting and handled fill the
   * memory.
   */
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
        // The client disconnected during its body.
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

/** The handler runs on and its result is ignored. */
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
 * Type and key are in unsigned headers; `webhook-id`, derived from them, is signed. Without this
 * comparison a recorded request could be replayed as another message.
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

/** A relay does not count this as an attempt. */
const LATER = answer(503, "not now; send it again", { "retry-after": "1" });
const TOO_LARGE = answer(413, "the body is too large");
