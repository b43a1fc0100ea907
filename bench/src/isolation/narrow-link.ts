/** A TCP proxy that limits the bytes a second from server to client. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface NarrowLink {
  readonly port: number;
  close(): Promise<void>;
}

/** All connections share the link; their chunks pass one after another. */
export async function openNarrowLink(target: URL, port: number, bytesPerSecond: number): Promise<NarrowLink> {
  const sockets = new Set<Socket>();
  let freeAtMs = 0;
  const server = createServer((client) => {
    const upstream = connect({ host: target.hostname, port, noDelay: true });
    client.setNoDelay(true);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    client.pipe(upstream);
    upstream.on("data", (chunk: Buffer) => {
      upstream.pause();
      const now = performance.now();
      freeAtMs = Math.max(freeAtMs, now) + (chunk.length / bytesPerSecond) * 1000;
      setTimeout(() => {
        client.write(chunk);
        upstream.resume();
      }, freeAtMs - now);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
