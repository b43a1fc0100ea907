/** The console behind a server of Node's, or of a framework that has read the body already. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { describeError, type Logger } from "rowpost";

type Fetch = (request: Request) => Promise<Response>;

/** Express sets these: `body` by express.json(), `originalUrl` where `url` lacks the mount path. */
interface FrameworkRequest extends IncomingMessage {
  readonly body?: unknown;
  readonly originalUrl?: string;
}

/** Makes the listener. What fails in it closes the one connection. */
export function nodeListener(
  fetch: Fetch,
  logger: Logger,
): (request: IncomingMessage, response: ServerResponse) => void {
  const listener = getRequestListener(fetch, { overrideGlobalObjects: false });
  return (request: FrameworkRequest, response) => {
    const isRead = request.readableEnded && request.body !== undefined;
    // Under a mount path Express shortens the URL, and the console needs it whole for its base
    // path.
    if (request.originalUrl !== undefined) request.url = request.originalUrl;
    const answered = isRead ? answerRead(fetch, request, response) : listener(request, response);
    Promise.resolve(answered).catch((error: unknown) => {
      logger.error("a request could not be answered", { error: describeError(error) });
      response.destroy();
    });
  };
}

/** The stream is empty: the body is made again from what was parsed. */
async function answerRead(fetch: Fetch, request: FrameworkRequest, response: ServerResponse): Promise<void> {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    for (const each of Array.isArray(value) ? value : [value]) if (each !== undefined) headers.append(name, each);
  }
  headers.delete("content-length");
  const { body, method = "GET" } = request;
  const hasBody = method !== "GET" && method !== "HEAD";
  const url = new URL(request.url ?? "/", `http://${request.headers.host ?? "localhost"}`);
  const answer = await fetch(new Request(url, { method, headers, ...(hasBody ? { body: textOf(body) } : {}) }));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(Buffer.from(await answer.arrayBuffer()));
}

function textOf(body: unknown): string {
  return typeof body === "string" ? body : Buffer.isBuffer(body) ? body.toString() : JSON.stringify(body);
}
