/** What holds for an adapter with one connection, beside the contract: servers freeze, or go. */
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Broker, OutgoingMessage } from "../../src/brokers/broker.ts";
import { createTcpProxy } from "../../src/testing/index.ts";
import { noDeadline } from "./messages.ts";
import { added, counts, endsByItself, resources } from "./outcomes.ts";

/** Options that these adapters have in common. */
interface Options {
  readonly servers?: string | readonly string[];
  readonly ackTimeoutMs?: number;
  readonly connectTimeoutMs?: number;
  readonly maxInFlight?: number;
}

interface Subject {
  readonly create: (options?: Options) => Broker;
  readonly server: () => {
    readonly port: number;
    readonly freeze: () => Promise<void>;
    readonly thaw: () => void;
  };
  readonly message: (key: string, changes?: Partial<OutgoingMessage>) => OutgoingMessage;
  /** So many go out before the server has to answer. */
  readonly maxInFlight: number;
  /** After it thawed. */
  readonly afterAbort?: () => Promise<void>;
}

/** Publishes until a message is sent. */
export async function sends(broker: Broker, message: Subject["message"]): Promise<void> {
  let probes = 0;
  const probe = async (): Promise<string | undefined> => {
    probes += 1;
    return (await broker.publish([message(`probe-${process.hrtime.bigint()}-${probes}`)], noDeadline()))[0]?.status;
  };
  await expect.poll(probe, { timeout: 30_000, interval: 50 }).toBe("sent");
}

export function defineFaults({ create, server, message, maxInFlight, afterAbort }: Subject): void {
  test("a frozen server: unknown after the receipt's time, then certainly not handed over; all goes again once it thaws", async () => {
    const broker = create({ ackTimeoutMs: 1000 });
    try {
      await sends(broker, message);
      await server().freeze();
      const batch = Array.from({ length: 10 }, (_, index) => message(`frozen-${index}`));
      for (const result of await broker.publish(batch, noDeadline())) {
        expect(result).toMatchObject({ scope: "unknown", code: "ACK_TIMEOUT" });
      }
      // The old connection is given up, and no new one comes about.
      const second = await endsByItself("publish", broker.publish([message("frozen-later")], noDeadline()));
      expect(second).toMatchObject([{ status: "failed", scope: "connection", code: "CONNECT_TIMEOUT" }]);
      server().thaw();
      await sends(broker, message);
      expect(counts(await broker.publish(batch, noDeadline()))).toEqual({ sent: 10 });
    } finally {
      server().thaw();
      await broker.close();
    }
  }, 60_000);

  test("an abort settles a call to a frozen server, and what waited for its turn was not started", async () => {
    const broker = create({ ackTimeoutMs: 60_000, maxInFlight });
    try {
      await sends(broker, message);
      await server().freeze();
      const batch = Array.from({ length: 100 }, (_, index) => message(`aborted-${index}`));
      const deadline = { signal: AbortSignal.timeout(500) };
      // One call fills the window; another waits behind it, and is aborted by the same signal.
      const calls = [batch, [message("aborted-behind")]].map((each) => broker.publish(each, deadline));
      const outcomes = (await endsByItself("publish", Promise.all(calls))).map(counts);
      expect(outcomes).toEqual([{ unknown: maxInFlight, notStarted: 100 - maxInFlight }, { notStarted: 1 }]);
      server().thaw();
      // The places of the aborted call were given back.
      await sends(broker, message);
      await afterAbort?.();
    } finally {
      server().thaw();
      await broker.close();
    }
  }, 60_000);

  test("close waits for no answer of a frozen server, nor for a connection to one, and leaves nothing that keeps the process alive", async () => {
    const before = resources();
    const [used, unused] = [create({ ackTimeoutMs: 60_000 }), create({ connectTimeoutMs: 60_000 })];
    await sends(used, message);
    try {
      await server().freeze();
      const publishing = used.publish([message("closed", { body: "x".repeat(900_000) })], noDeadline());
      const connecting = unused.publish([message("closed")], noDeadline());
      await delay(50);
      await endsByItself("close", Promise.all([used.close(), unused.close()]));
      expect(await publishing).toMatchObject([{ status: "failed", scope: "unknown" }]);
      expect(await connecting).toMatchObject([{ status: "notStarted" }]);
      await expect.poll(() => added(before, resources()), { timeout: 30_000 }).toEqual([]);
    } finally {
      server().thaw();
    }
  }, 60_000);

  test("the next server is used when one goes away; then the first again", async () => {
    const proxies = await Promise.all([0, 1].map(() => createTcpProxy({ target: { port: server().port } })));
    const broker = create({ servers: ["127.0.0.1:1", ...proxies.map(({ port }) => `127.0.0.1:${port}`)] });
    try {
      for (const away of proxies) {
        await sends(broker, message);
        await Promise.all([away.refuse(), away.cut()]);
        await sends(broker, message);
        expect(proxies.map((proxy) => proxy.connectionCount())).toEqual(
          proxies.map((proxy) => (proxy === away ? 0 : 1)),
        );
        await away.accept();
      }
    } finally {
      await broker.close();
      for (const proxy of proxies) await proxy.close();
    }
  }, 60_000);
}
