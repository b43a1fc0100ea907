/** The console behind a server of Node's, or of a framework that has read the body already. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { describeError, type Logger } from "rowpost";
import { withPeer } from "./peer.ts";

export interface NodeListenerOptions {
  readonly fetch: (request: Request) => Promise<Response>;
  readonly logger: Logger;
  /** Then the last proxy says where a request came from. */
  readonly isBehindProxy: boolean;
}

/** Express sets these: `body` by express.json(), `originalUrl` where `url` lacks the mount path. */
interface FrameworkRequest extends IncomingMessage {
  readonly body?: unknown;
  readonly originalUrl?: string;
}

/** Makes the listener. What fails in it closes the one connection. */
export function nodeListener(
  options: NodeListenerOptions,
): (request: IncomingMessage, response: ServerResponse, body?: unknown) => void {
  const { fetch, logger } = options;
  const listener = getRequestListener(
    async (request, { incoming }) => await fetch(withPeer(request, addressOf(incoming, options))),
    { overrideGlobalObjects: false },
  );
  return (request: FrameworkRequest, response, given) => {
    const body = given ?? (request.readableEnded ? request.body : undefined);
    // Under a mount path Express shortens the URL, and the console needs it whole for its base
    // path.
    if (request.originalUrl !== undefined) request.url = request.originalUrl;
    const answered = body === undefined ? listener(request, response) : answerRead(options, request, response, body);
    Promise.resolve(answered).catch((error: unknown) => {
      logger.error("a request could not be answered", { error: describeError(error) });
      response.destroy();
    });
  };
}

function addressOf(
  { headers, socket }: Pick<IncomingMessage, "headers" | "socket">,
  { isBehindProxy }: NodeListenerOptions,
): string | undefined {
  const forwarded = headers["x-forwarded-for"];
  // The last one: it was added by the proxy that is nearest, and those before may be invented.
  const [last] = isBehindProxy ? [forwarded ?? []].flat().join(",").split(",").slice(-1) : [];
  return last?.trim() || socket.remoteAddress;
}

/** The stream is empty: the body is made again from what was parsed. */
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
  const answer = await options.fetch(withPeer(made, addressOf(request, options)));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(Buffer.from(await answer.arrayBuffer()));
}

function textOf(body: unknown): string {
  return typeof body === "string" ? body : Buffer.isBuffer(body) ? body.toString() : JSON.stringify(body);
}
