/**
 * `POST /confirmations`: consumers without access to the database report what they consumed, or
 * could not (docs/confirmation.md). The body is one report or a list, as for `outbox.confirm`, and
 * the answer is its result or theirs.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import {
  ConfigurationError,
  type Confirmation,
  type ConfirmationResult,
  InvalidMessageError,
  type Logger,
  type MetricsRegistry,
  type Outbox,
  RowpostError,
} from "rowpost";

/** Variable with the token; without it nothing is accepted. */
export const CONFIRM_TOKEN_VARIABLE = "ROWPOST_CONFIRM_TOKEN";
/** Shorter tokens can be guessed. */
export const LEAST_TOKEN_LENGTH = 16;

const MOST_BYTES = 1_048_576;
const MOST_REPORTS = 1_000;

export interface ConfirmEndpointOptions {
  readonly token: string;
  readonly outbox: Pick<Outbox, "confirm">;
  readonly metrics: Pick<MetricsRegistry, "increment">;
  readonly logger: Logger;
}

/** The answer; errors follow RFC 9457. */
export interface EndpointAnswer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export type ConfirmEndpoint = (request: IncomingMessage) => Promise<EndpointAnswer>;

export function createConfirmEndpoint(options: ConfirmEndpointOptions): ConfirmEndpoint {
  const expected = digest(options.token);
  return async (request) => {
    if (request.method !== "POST") return problem(405, "POST only", { allow: "POST" });
    const [, token = ""] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? "") ?? [];
    if (!timingSafeEqual(digest(token), expected)) {
      return problem(401, `send the header Authorization: Bearer, with the token of ${CONFIRM_TOKEN_VARIABLE}`, {
        "www-authenticate": "Bearer",
      });
    }
    const text = await bodyOf(request);
    if (text === undefined) {
      return problem(413, `more than ${MOST_BYTES} bytes: send the reports in several requests`, {
        connection: "close",
      });
    }
    return await confirm(options, text);
  };
}

async function confirm({ outbox, metrics, logger }: ConfirmEndpointOptions, text: string): Promise<EndpointAnswer> {
  let given: Confirmation | readonly Confirmation[];
  try {
    given = JSON.parse(text) as typeof given;
  } catch {
    return problem(400, 'the body must be JSON: {"type":"…","key":"…"}, or a list of these');
  }
  const list = Array.isArray(given) ? (given as readonly Confirmation[]) : [given as Confirmation];
  if (list.length > MOST_REPORTS)
    return problem(413, `more than ${MOST_REPORTS} reports: send them in several requests`);
  try {
    const results = await outbox.confirm(list);
    for (const { status } of results) metrics.increment("rowpost_confirmations_total", { status });
    tellUnknown(logger, list, results);
    return answer(200, "application/json", Array.isArray(given) ? results : results[0]);
  } catch (error) {
    if (error instanceof InvalidMessageError || error instanceof ConfigurationError) return problem(400, error.message);
    logger.error("confirmations could not be written", { error, reports: list.length });
    // Names of tables and servers only go into the log.
    const code = error instanceof RowpostError ? error.code : "UNEXPECTED";
    const isPassing = error instanceof RowpostError && error.retriable;
    const words = `${code}: nothing was confirmed${isPassing ? "; send it again" : ", and the relay's log says why"}`;
    return isPassing ? problem(503, words, { "retry-after": "1" }) : problem(500, words);
  }
}

/**
 * Logged, because nobody may read the answers and a consumer that confirms elsewhere would go
 * unnoticed.
 */
export function tellUnknown(
  logger: Logger,
  reports: readonly Confirmation[],
  results: readonly ConfirmationResult[],
): void {
  const unknown = reports.filter((_, index) => results[index]?.status === "unknown");
  const [first] = unknown;
  if (first === undefined) return;
  const { type, key, consumer } = first;
  const kept = results.filter((result) => result.kept === true).length;
  logger.warn("confirmed messages are neither in the table nor in its archive", {
    count: unknown.length,
    kept,
    type,
    key,
    consumer,
  });
}

/** Undefined: too long. The connection stays open, so that the answer arrives. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    bytes += (chunk as Buffer).length;
    if (bytes > MOST_BYTES) return undefined;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString();
}

/** Equal length for every token, as timingSafeEqual requires. */
function digest(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

function answer(status: number, type: string, value: unknown): EndpointAnswer {
  return { status, type, body: `${JSON.stringify(value)}\n` };
}

function problem(status: number, detail: string, headers?: EndpointAnswer["headers"]): EndpointAnswer {
  return { ...answer(status, "application/problem+json", { status, detail }), ...(headers && { headers }) };
}
