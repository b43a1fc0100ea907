/**
 * A TCP proxy on 127.0.0.1 that breaks connections on purpose, for tests of outages between a
 * client and a real server.
 */
import type { AddressInfo, Server, Socket } from "node:net";
import { connect, createServer } from "node:net";

/** Options of {@link createTcpProxy}. */
export interface TcpProxyOptions {
  /** The real server. `host` defaults to 127.0.0.1. */
  readonly target: { readonly host?: string | undefined; readonly port: number };
  /** Port to listen on; default 0, any free one. */
  readonly port?: number | undefined;
  /** Delay of each chunk in ms, both ways, in order. Default 0. */
  readonly delayMs?: number | undefined;
}

/**
 * Direction of held back bytes. `toTarget`: requests do not arrive. `toClient`: they arrive, but
 * answers do not.
 */
export type MuteDirection = "both" | "toTarget" | "toClient";

/** A running proxy. */
export interface TcpProxy {
  /** Host to connect to. */
  readonly host: string;
  /** Port to connect to. */
  readonly port: number;
  /** Delay in ms. Can be changed at any time, for later chunks. */
  delayMs: number;
  /**
   * Resets every connection (RST, both sides) at once and loses bytes in flight. Accepts new
   * connections. Resolves when all are closed.
   */
  cut(): Promise<void>;
  /**
   * Passes no more bytes on, for connections that exist and for new ones, which are still accepted:
   * a host that froze, or a cable that was pulled out. Nothing is dropped: the bytes wait, and go
   * on at {@link unmute}.
   */
  mute(direction?: MuteDirection): void;
  /** Ends `mute`. */
  unmute(): void;
  /**
   * Stops listening: new connections get ECONNREFUSED. Existing ones go on (use {@link cut} for
   * them).
   */
  refuse(): Promise<void>;
  /** Listens again on the same port. */
  accept(): Promise<void>;
  /** Open connections of clients. */
  connectionCount(): number;
  /** Bytes passed from clients to the target since the start. */
  bytesToTarget(): number;
  /** Resets every connection and stops listening. Leaves no handle. May be called twice. */
  close(): Promise<void>;
}

interface Link {
  readonly client: Socket;
  readonly target: Socket;
}

/** Starts a proxy. Resolves when it listens. */
export async function createTcpProxy(options: TcpProxyOptions): Promise<TcpProxy> {
  const host = "127.0.0.1";
  const links = new Set<Link>();
  let muted: MuteDirection | undefined;
  let bytesToTarget = 0;
  let server: Server | undefined;
  let port = options.port ?? 0;

  const isMuted = (way: "toTarget" | "toClient"): boolean => muted === "both" || muted === way;

  function forward(from: Socket, to: Socket, way: "toTarget" | "toClient"): void {
    const delayed: (() => void)[] = [];
    let lastAt = 0;

    /** Runs a step after the delay, never before an earlier one, even if the delay was lowered. */
    function later(step: () => void): void {
      if (delayed.length === 0 && proxy.delayMs <= 0) {
        step();
        return;
      }
      const now = performance.now();
      lastAt = Math.max(lastAt, now + proxy.delayMs);
      delayed.push(step);
      setTimeout(() => delayed.shift()?.(), lastAt - now).unref();
    }

    from.on("data", (chunk: Buffer) => {
      // A chunk read when mute() came is put back, so that nothing passes and nothing is lost.
      if (isMuted(way)) {
        from.pause();
        from.unshift(chunk);
        return;
      }
      if (way === "toTarget") bytesToTarget += chunk.length;
      later(() => {
        if (to.writable && !to.write(chunk)) from.pause();
      });
    });
    to.on("drain", () => {
      if (!isMuted(way)) from.resume();
    });
    from.on("end", () => later(() => to.end()));
  }

  function onConnection(client: Socket): void {
    const target = connect({
      host: options.target.host ?? host,
      port: options.target.port,
      noDelay: true,
      allowHalfOpen: true,
    });
    client.setNoDelay(true);
    const link: Link = { client, target };
    links.add(link);
    forward(client, target, "toTarget");
    forward(target, client, "toClient");
    if (isMuted("toTarget")) client.pause();
    if (isMuted("toClient")) target.pause();
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      // An error on one side resets the other: the proxy must not end it cleanly.
      one.on("error", () => reset(other));
      one.on("close", () => {
        if (client.closed && target.closed) links.delete(link);
        if (!one.readableEnded) reset(other);
      });
    }
  }

  function listen(): Promise<void> {
    const listening = createServer({ allowHalfOpen: true }, onConnection);
    server = listening;
    return new Promise((resolve, reject) => {
      listening.once("error", reject);
      listening.listen({ host, port }, () => {
        listening.off("error", reject);
        port = (listening.address() as AddressInfo).port;
        resolve();
      });
    });
  }

  async function cut(): Promise<void> {
    const closed = [...links].flatMap(({ client, target }) => [whenClosed(client), whenClosed(target)]);
    for (const { client, target } of links) {
      reset(client);
      reset(target);
    }
    await Promise.all(closed);
  }

  async function refuse(): Promise<void> {
    const listening = server;
    server = undefined;
    if (listening === undefined) return;
    // close() stops listening at once but calls back only after the last connection, perhaps never,
    // so it is not awaited.
    listening.close();
  }

  const proxy: TcpProxy = {
    host,
    get port() {
      return port;
    },
    delayMs: options.delayMs ?? 0,
    cut,
    mute(direction = "both") {
      muted = direction;
    },
    unmute() {
      muted = undefined;
      for (const { client, target } of links) {
        client.resume();
        target.resume();
      }
    },
    refuse,
    async accept() {
      if (server === undefined) await listen();
    },
    connectionCount: () => links.size,
    bytesToTarget: () => bytesToTarget,
    async close() {
      await refuse();
      await cut();
    },
  };
  await listen();
  return proxy;
}

/** `close` follows whatever the peer does: at once, or a turn of the event loop later. */
function reset(socket: Socket): void {
  if (socket.destroyed) return;
  // Only a connected socket can be reset; a connecting one is dropped.
  if (socket.connecting) socket.destroy();
  // A socket that is shutting down cannot be reset either: libuv refuses with EINVAL, and Node then
  // neither closes the handle nor emits `close`. All its bytes are in the kernel, so the shutdown
  // finishes in the next turn. A socket with bytes left to write has not begun its shutdown.
  else if (isShuttingDown(socket)) socket.once("finish", () => reset(socket));
  else socket.resetAndDestroy();
}

function isShuttingDown({ writableEnded, writableFinished, writableLength }: Socket): boolean {
  return writableEnded && !writableFinished && writableLength === 0;
}

function whenClosed(socket: Socket): Promise<void> {
  if (socket.closed) return Promise.resolve();
  return new Promise((resolve) => {
    socket.once("close", () => resolve());
  });
}
