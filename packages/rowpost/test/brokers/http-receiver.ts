import { once } from "node:events";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** A request as the receiver got it. */
export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A real HTTP server on 127.0.0.1. */
export interface HttpReceiver {
  readonly port: number;
  readonly url: string;
  /** In the order in which they were complete. */
  readonly requests: ReceivedRequest[];
  /** Connections that clients have opened so far. */
  readonly connectionCount: () => number;
  /** Resolves when every connection of a client has been closed, by whichever side. */
  readonly disconnected: () => Promise<void>;
  /** Stops with all its connections and starts again, on the same port. */
  readonly restart: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Starts one. `answer` ends the response, now or later; without it every request gets 204. */
export async function startHttpReceiver(
  answer: (request: ReceivedRequest, response: ServerResponse) => void = (_request, response) =>
    void response.writeHead(204).end(),
): Promise<HttpReceiver> {
  const requests: ReceivedRequest[] = [];
  let connections = 0;
  async function onRequest(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const { method = "", url = "", headers } = incoming;
    const request = { method, path: url, headers, body: Buffer.concat(chunks) };
    requests.push(request);
    answer(request, response);
  }
  const server = createServer((incoming, response) => {
    // A request that the client broke off ends its iteration with an error; there is nobody to
    // answer.
    onRequest(incoming, response).catch(() => response.destroy());
  });
  // Neither closes idle connections nor tells when it would: what a client does about them is its
  // own doing.
  server.keepAliveTimeout = 0;
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  async function listen(port: number): Promise<number> {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  }
  async function close(): Promise<void> {
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  }
  const port = await listen(0);
  return {
    port,
    url: `http://127.0.0.1:${port}/hook`,
    requests,
    connectionCount: () => connections,
    async disconnected() {
      // Not once(): it would reject when a connection is reset.
      const closed = (socket: Socket): Promise<void> =>
        new Promise((resolve) => {
          socket.on("close", () => resolve());
        });
      await Promise.all([...sockets].map(closed));
    },
    async restart() {
      await close();
      await listen(port);
    },
    close,
  };
}
