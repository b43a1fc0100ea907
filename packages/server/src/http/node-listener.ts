/** The console behind a Node.js server, or a framework that has read the body already. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { describeError, type Logger } from "rowpost";
import { type Peer, withPeer } from "./peer.ts";
import { languageOf, Problem, problemResponse } from "./problem.ts";

export interface NodeListenerOptions {
  readonly fetch: (request: Request) => Promise<Response>;
  readonly logger: Logger;
  /** The last proxy then reports the origin of a request. */
  readonly isBehindProxy: boolean;
  readonly basePath: string;
}

/**
 * Set by Express: `body` by express.json(), `originalUrl` and `baseUrl` where `url` lacks the mount
 * path.
 */
interface FrameworkRequest extends IncomingMessage {
  readonly body?: unknown;
  readonly originalUrl?: string;
  readonly baseUrl?: string;
}

/** An error in it closes only that connection. */
export function nodeListener(
  options: NodeListenerOptions,
): (request: IncomingMessage, response: ServerResponse, body?: unknown) => void {
  const { fetch, logger } = options;
  const listener = getRequestListener(
    async (request, { incoming }) => await fetch(withPeer(request, peerAt(incoming, options))),
    { overrideGlobalObjects: false },
  );
  let isWarned = false;

  /** The URL with its base path or without any prefix, as the console expects it. */
  function urlOf({ baseUrl = "", originalUrl, url = "/" }: FrameworkRequest): string {
    if (options.basePath !== "/") return isBelow(originalUrl, options.basePath) ? originalUrl : url;
    if (baseUrl !== "" && !isWarned) {
      isWarned = true;
      const hint = `createConsole({ basePath: "${baseUrl}" }) lets its page find its files`;
      logger.warn(`the console is mounted under a path that it was not told; ${hint}`, { baseUrl });
    }
    return url;
  }

  return (request: FrameworkRequest, response, given) => {
    const body = given ?? (request.readableEnded ? request.body : undefined);
    request.url = urlOf(request);
    const answered =
      body !== undefined
        ? answerRead(options, request, response, body)
        : request.readableEnded && mayHaveBody(request)
          ? answerUnread(options, request, response)
          : listener(request, response);
    Promise.resolve(answered).catch((error: unknown) => {
      logger.error("a request could not be answered", { error: describeError(error) });
      response.destroy();
    });
  };
}

function isBelow(url: string | undefined, path: string): url is string {
  return url?.startsWith(path) === true && /^(?:[/?#]|$)/.test(url.slice(path.length));
}

function mayHaveBody({ headers, method }: IncomingMessage): boolean {
  if (method === "GET" || method === "HEAD") return false;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** The body was already read, and the request would wait for it for ever. */
async function answerUnread(
  { logger }: NodeListenerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const detail =
    "the framework has read the body already; give it to console.node(request, response, body), or mount the console before what reads it";
  logger.error(detail, { method: request.method, url: request.url });
  const language = languageOf(request.headers["accept-language"] ?? null);
  await write(response, problemResponse(new Problem("unexpected", detail), language, `urn:uuid:${randomUUID()}`));
}

function peerAt(
  { headers, socket }: Pick<IncomingMessage, "headers" | "socket">,
  { isBehindProxy }: NodeListenerOptions,
): Peer {
  const forwarded = headers["x-forwarded-for"];
  // The last address is from the nearest proxy; earlier ones may be forged.
  const [last] = isBehindProxy ? [forwarded ?? []].flat().join(",").split(",").slice(-1) : [];
  return { address: last?.trim() || socket.remoteAddress, socket: socket.remoteAddress };
}

/** The stream is empty, so the body is rebuilt from the parsed value. */
async function answerRead(
  options: NodeListenerOptions,
  request: FrameworkRequest,
  response: ServerResponse,
  body: unknown,
): Promise<void> {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each !== undefined) headers.append(name, each);
  }
  headers.delete("content-length");
  const { method = "GET" } = request;
  const hasBody = method !== "GET" && method !== "HEAD";
  const url = new URL(request.url ?? "/", `http://${request.headers.host ?? "localhost"}`);
  const made = new Request(url, { method, headers, ...(hasBody ? { body: textOf(body) } : {}) });
  const answer = await options.fetch(withPeer(made, peerAt(request, options)));
  await write(response, answer);
}

async function write(response: ServerResponse, answer: Response): Promise<void> {
  // An object would keep only the last of several cookies.
  response.setHeaders(answer.headers);
  response.writeHead(answer.status);
  response.end(Buffer.from(await answer.arrayBuffer()));
}

function textOf(body: unknown): string {
  return typeof body === "string" ? body : Buffer.isBuffer(body) ? body.toString() : JSON.stringify(body);
}
