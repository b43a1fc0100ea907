/**
 * How the RabbitMQ broker ends, loses and replaces connections and channels, on a real server
 * behind proxies.
 */
import diagnostics from "node:diagnostics_channel";
import { once } from "node:events";
import { type AddressInfo, connect as connectSocket, createServer, type Socket } from "node:net";
import { connect, type RecoveringChannelModel } from "amqplib";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import type { Broker } from "../../src/brokers/broker.ts";
import { type RabbitmqOptions, rabbitmq } from "../../src/brokers/rabbitmq/index.ts";
import { createTcpProxy, type TcpProxy } from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { noDeadline, outgoing } from "./messages.ts";
import { openTestQueues, type TestQueues } from "./rabbitmq-queues.ts";

interface Frozen {
  readonly broker: Broker;
  readonly sockets: readonly Socket[];
  /** The first of the sockets is gone. */
  readonly closed: Promise<unknown>;
}

describeWithService("rabbitmq", "connections of the RabbitMQ broker", (service) => {
  let queues: TestQueues;
  const closers: (() => unknown)[] = [];

  beforeAll(async () => {
    queues = await openTestQueues(service.address);
  });

  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  afterAll(() => queues?.close());

  function create(options: RabbitmqOptions): Broker {
    const broker = rabbitmq(options);
    closers.push(() => broker.close());
    return broker;
  }

  function target(): { readonly host: string; readonly port: number } {
    const { hostname: host, port } = new URL(service.address);
    return { host, port: Number(port || 5672) };
  }

  async function openProxy(): Promise<TcpProxy> {
    const proxy = await createTcpProxy({ target: target() });
    closers.push(() => proxy.close());
    return proxy;
  }

  function urlAt(port: number): string {
    const url = new URL(service.address);
    url.host = `127.0.0.1:${port}`;
    return url.href;
  }

  async function openThrough(proxy: TcpProxy): Promise<RecoveringChannelModel> {
    const connection = await connect(urlAt(proxy.port), { recovery: true });
    connection.on("error", () => undefined);
    closers.push(() => connection.close().catch(() => undefined));
    return connection;
  }

  /** The sockets that are opened to a port from now on. */
  function socketsTo(port: number): readonly Socket[] {
    const sockets: Socket[] = [];
    const onSocket = (message: unknown): void => {
      const { socket } = message as { readonly socket: Socket };
      socket.once("connect", () => {
        if (socket.remotePort === port) sockets.push(socket);
      });
    };
    diagnostics.subscribe("net.client.socket", onSocket);
    closers.push(() => diagnostics.unsubscribe("net.client.socket", onSocket));
    return sockets;
  }

  /**
   * A broker whose server froze; amqplib has given the connection up, and written an end that
   * nobody answers.
   */
  async function createFrozen(): Promise<Frozen> {
    const node = await openNode(target(), closers);
    const sockets = socketsTo(node.port);
    const url = [urlAt(node.port), service.address];
    // Only a frozen node takes as long: one that is given up would be no connection to freeze.
    const broker = create({ url, heartbeatSeconds: 1, connectTimeoutMs: 3_000 });
    await broker.check();
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false]);
    const closed = new Promise((resolve) => sockets[0]?.once("close", resolve));
    // A process that stood still for half a second closes it without an end.
    const ended = new Promise((resolve) => sockets[0]?.once("finish", resolve).once("close", resolve));
    node.freeze();
    await ended;
    return { broker, sockets, closed };
  }

  test("a frozen server leaves no socket behind", async () => {
    const { closed } = await createFrozen();
    await closed;
  });

  test("a frozen server leaves no socket behind when the broker is closed, also if it has gone to another node", async () => {
    const topic = await queues.create("frozen");
    const { broker, sockets } = await createFrozen();
    expect(await broker.publish([outgoing("f", { topic })], noDeadline())).toMatchObject([{ status: "sent" }]);
    await broker.close();
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual(sockets.map(() => true));
  });

  test("a node that ends a connection in the packet in which it opened it is asked for another one", async () => {
    const topic = await queues.create("joined");
    const node = await openNode(target(), closers, (chunk, connection) =>
      connection === 1 && chunk.includes(OPEN_OK) ? Buffer.concat([chunk, closeFrame()]) : chunk,
    );
    const broker = create({ url: urlAt(node.port), connectTimeoutMs: 2_000 });
    const batch = [outgoing("j", { topic })];
    expect(await broker.publish(batch, noDeadline())).toMatchObject([{ status: "failed", scope: "connection" }]);
    expect(await broker.publish(batch, noDeadline())).toMatchObject([{ status: "sent" }]);
    expect(node.opened()).toBe(2);
  });

  test("a channel that opens after the broker was closed does not stay open on the user's connection", async () => {
    const topic = await queues.create("late");
    const proxy = await openProxy();
    const connection = await openThrough(proxy);
    const open = vi.spyOn(connection, "createConfirmChannel");
    const broker = create({ connection });
    proxy.mute("toClient");
    const publishing = broker.publish([outgoing("l", { topic })], noDeadline());
    await vi.waitFor(() => expect(open).toHaveBeenCalledTimes(1));
    await broker.close();
    expect(await publishing).toMatchObject([{ status: "notStarted" }]);
    proxy.unmute();
    const late = await open.mock.results[0]?.value;
    await once(late, "close");
  });

  test("a connection that recovers by itself is not asked for channels while it is away", async () => {
    const topic = await queues.create("away");
    const proxy = await openProxy();
    const connection = await openThrough(proxy);
    const broker = create({ connection });
    const batch = [outgoing("a", { topic })];
    expect(await broker.publish(batch, noDeadline())).toMatchObject([{ status: "sent" }]);
    const open = vi.spyOn(connection, "createConfirmChannel");
    const [disconnected, connected] = ["disconnect", "connect"].map(
      (event) => new Promise((resolve) => connection.once(event, resolve)),
    );
    await proxy.refuse();
    await proxy.cut();
    await disconnected;
    for (let call = 0; call < 3; call += 1) {
      expect(await broker.publish(batch, noDeadline())).toMatchObject([{ status: "failed", scope: "connection" }]);
    }
    await expect(broker.check()).rejects.toMatchObject({ retriable: true });
    expect(open).not.toHaveBeenCalled();
    await proxy.accept();
    await connected;
    expect(await broker.publish(batch, noDeadline())).toMatchObject([{ status: "sent" }]);
    expect(open).toHaveBeenCalledTimes(1);
  });
});

/** `connection.open-ok`. */
const OPEN_OK = Buffer.from([1, 0, 0, 0, 0, 0, 5, 0, 10, 0, 41, 0, 0xce]);

/** `connection.close`, 320, as a node that shuts down says it. */
function closeFrame(): Buffer {
  const words = Buffer.from("CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'");
  const size = 4 + 2 + 1 + words.length + 4;
  const head = Buffer.from([1, 0, 0, 0, 0, 0, size, 0, 10, 0, 50, 320 >> 8, 320 & 255, words.length]);
  return Buffer.concat([head, words, Buffer.from([0, 0, 0, 0, 0xce])]);
}

/** A way to the real server. */
interface Node {
  readonly port: number;
  /** Connections so far. */
  opened(): number;
  /**
   * From now on it reads and says nothing on any connection, and closes none: a host that froze.
   */
  freeze(): void;
}

/** `answer` may change what the server says on its so-manieth connection. */
async function openNode(
  target: { readonly host: string; readonly port: number },
  closers: (() => unknown)[],
  answer: (chunk: Buffer, connection: number) => Buffer = (chunk) => chunk,
): Promise<Node> {
  let opened = 0;
  let frozen = false;
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    opened += 1;
    const connection = opened;
    const node = connectSocket(target);
    clients.add(client);
    client.on("data", (chunk: Buffer) => void node.write(chunk));
    client.on("error", () => undefined);
    client.on("close", () => node.destroy());
    node.on("data", (chunk: Buffer) => {
      if (!frozen) client.write(answer(chunk, connection));
    });
    node.on("error", () => undefined);
    node.on("close", () => {
      if (!frozen) client.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => {
    for (const client of clients) client.destroy();
    server.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    opened: () => opened,
    freeze() {
      frozen = true;
      for (const client of clients) client.pause();
      // New ones are taken by the system, and get no answer either.
      server.on("connection", (client) => client.pause());
    },
  };
}
