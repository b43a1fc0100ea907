import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";
import { connect, createServer } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TcpProxy } from "./tcp-proxy.ts";
import { createTcpProxy } from "./tcp-proxy.ts";

let server: Server;
let proxy: TcpProxy;
let received: string;
let accepted: Socket[];

beforeEach(async () => {
  received = "";
  accepted = [];
  // Echoes in capitals, and answers "bye" when the peer has ended.
  server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket);
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      received += chunk.toString();
      socket.write(chunk.toString().toUpperCase());
    });
    socket.on("end", () => socket.end("bye"));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  proxy = await createTcpProxy({ target: { port: (server.address() as AddressInfo).port } });
});

afterEach(async () => {
  await proxy.close();
  for (const socket of accepted) socket.destroy();
  server.close();
});

async function client(): Promise<Socket> {
  const socket = connect({ host: proxy.host, port: proxy.port, allowHalfOpen: true });
  await once(socket, "connect");
  return socket;
}

async function nextText(socket: Socket): Promise<string> {
  const [chunk] = (await once(socket, "data")) as [Buffer];
  return chunk.toString();
}

/**
 * Some turns of the event loop on loopback, enough for bytes to pass. Only used to show that
 * something did NOT happen.
 */
async function quietMoment(): Promise<void> {
  await new Promise((resolve) => {
    setTimeout(resolve, 50);
  });
}

describe("tcp proxy", () => {
  test("passes bytes on, both ways, and a clean end", async () => {
    const socket = await client();
    socket.write("hello");
    expect(await nextText(socket)).toBe("HELLO");
    expect(proxy.bytesToTarget()).toBe(5);
    expect(proxy.connectionCount()).toBe(1);
    socket.end();
    expect(await nextText(socket)).toBe("bye");
    await once(socket, "close");
  });

  test("what was delayed arrives before what came later without a delay, the end included", async () => {
    proxy.delayMs = 200;
    const socket = await client();
    socket.write("slow ");
    await expect.poll(() => proxy.bytesToTarget()).toBe(5);
    proxy.delayMs = 0;
    socket.end("quick");
    await once(accepted[0] as Socket, "end");
    expect(received).toBe("slow quick");
    socket.destroy();
  });

  test("cut resets connections; new ones work", async () => {
    const socket = await client();
    const [[error]] = await Promise.all([once(socket, "error"), proxy.cut()]);
    expect((error as NodeJS.ErrnoException).code).toBe("ECONNRESET");
    expect(proxy.connectionCount()).toBe(0);
    const next = await client();
    next.write("x");
    expect(await nextText(next)).toBe("X");
    next.destroy();
  });

  test("mute holds bytes back without losing any; unmute lets them go on", async () => {
    const socket = await client();
    proxy.mute();
    socket.write("one ");
    socket.write("two");
    const late = await client();
    late.write(" three");
    await quietMoment();
    expect(received).toBe("");
    const echoes = Promise.all([nextText(socket), nextText(late)]);
    proxy.unmute();
    await echoes;
    expect(received.length).toBe("one two three".length);
    socket.destroy();
    late.destroy();
  });

  test("mute toClient lets requests through and holds answers back", async () => {
    const socket = await client();
    proxy.mute("toClient");
    let answered = false;
    socket.on("data", () => {
      answered = true;
    });
    socket.write("request");
    await expect.poll(() => received).toBe("request");
    await quietMoment();
    expect(answered).toBe(false);
    proxy.unmute();
    await expect.poll(() => answered).toBe(true);
    socket.destroy();
  });

  test("refuse makes the port closed for new connections only; accept opens the same one", async () => {
    const port = proxy.port;
    const existing = await client();
    await proxy.refuse();
    const [error] = (await once(connect({ host: "127.0.0.1", port }), "error")) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNREFUSED");
    existing.write("still here");
    expect(await nextText(existing)).toBe("STILL HERE");
    await proxy.accept();
    expect(proxy.port).toBe(port);
    const next = await client();
    next.destroy();
    existing.destroy();
  });

  test("delay holds each chunk for its time and keeps their order", async () => {
    proxy.delayMs = 30;
    const socket = await client();
    const startedAt = performance.now();
    socket.write("a");
    socket.write("b");
    let echoed = "";
    socket.on("data", (chunk: Buffer) => {
      echoed += chunk.toString();
    });
    await expect.poll(() => echoed).toBe("AB");
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(58);
    socket.destroy();
  });

  test("close ends also when it comes in the very turn in which a connection ends", async () => {
    // Only a listener on the proxy's own socket, after the proxy's, is certain to be called in that
    // turn.
    const closed = new Promise<void>((resolve, reject) => {
      function onSocket(message: unknown): void {
        const { socket } = message as { readonly socket: Socket };
        if (socket.localPort !== proxy.port) return;
        unsubscribe("net.server.socket", onSocket);
        socket.once("end", () => void proxy.close().then(resolve, reject));
      }
      subscribe("net.server.socket", onSocket);
    });
    const socket = await client();
    socket.write("hello");
    await nextText(socket);
    socket.end();
    const [[error]] = await Promise.all([once(socket, "error"), closed]);
    expect((error as NodeJS.ErrnoException).code).toBe("ECONNRESET");
    expect(proxy.connectionCount()).toBe(0);
  });

  test("a target that is away resets the client", async () => {
    server.close();
    await once(server, "close");
    const socket = connect({ host: proxy.host, port: proxy.port });
    const [error] = (await once(socket, "error")) as [NodeJS.ErrnoException];
    expect(error.code).toBe("ECONNRESET");
  });
});
