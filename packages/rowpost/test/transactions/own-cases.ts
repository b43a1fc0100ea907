/** What the tests of `outbox.transaction` share. */
import { expect, vi } from "vitest";
import { DatabaseUnavailableError, type NewMessage, type Outbox } from "../../src/index.ts";
import { createTcpProxy } from "../../src/testing/tcp-proxy.ts";

/** A message with this key. */
export function message(key: string): NewMessage {
  return { type: "order.created", key, topic: "orders", body: { key } };
}

/** A COMMIT takes effect, and its answer is lost: the caller is told that nobody knows. */
export async function commitWithoutAnswer(place: {
  readonly url: string;
  readonly outbox: Outbox;
  readonly keys: () => Promise<string[]>;
  readonly openPool: (url: string) => { end(): Promise<unknown> };
}): Promise<void> {
  const { keys, outbox } = place;
  const proxy = await createTcpProxy({ target: { port: Number(new URL(place.url).port) } });
  const throughProxy = new URL(place.url);
  throughProxy.host = `${proxy.host}:${proxy.port}`;
  const pool = place.openPool(throughProxy.href);
  try {
    const work = outbox.transaction(pool, async (tx) => {
      await outbox.enqueue(tx, message("unknown"));
      proxy.mute("toClient");
    });
    const outcome = expect(work).rejects.toBeInstanceOf(DatabaseUnavailableError);
    await vi.waitFor(async () => expect(await keys(), "the COMMIT took effect").toEqual(["unknown"]));
    await proxy.cut();
    await outcome;
  } finally {
    await pool.end();
    await proxy.close();
  }
}
