/** What the tests of `outbox.transaction` share. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, vi } from "vitest";
import {
  DatabaseUnavailableError,
  MissingAwaitError,
  type NewMessage,
  type Outbox,
  type Transaction,
  TransactionRequiredError,
} from "../../src/index.ts";
import { createTcpProxy } from "../../src/testing/tcp-proxy.ts";

/** A message with this key. */
export function message(key: string): NewMessage {
  return { type: "order.created", key, topic: "orders", body: { key } };
}

/**
 * Work that does not wait for what it has started is rolled back and told so, whatever it forgot
 * and whether that fails or not; nothing reaches the process as an unhandled rejection, which
 * vitest would report (rule: awaited-work).
 */
export async function forgottenAwaits(place: {
  readonly outbox: Outbox;
  readonly keys: () => Promise<string[]> | string[];
  readonly orders: () => Promise<string[]> | string[];
  readonly on?: unknown;
}): Promise<void> {
  const { keys, orders, outbox } = place;
  const unencodable = { ...message("unencodable"), body: () => undefined };
  const forgets: Readonly<Record<string, (tx: Transaction) => unknown>> = {
    enqueue: (tx) => outbox.enqueue(tx, message("forgotten")),
    "enqueue of several": (tx) => outbox.enqueue(tx, [message("forgotten"), message("forgotten-2")]),
    "enqueue of what cannot be encoded": (tx) => outbox.enqueue(tx, unencodable),
    "enqueue with wrong options": (tx) => outbox.enqueue(tx, message("forgotten"), { onDuplicate: "no" as "throw" }),
    query: (tx) => tx.query("INSERT INTO orders VALUES ('forgotten-too')"),
    "query that fails": (tx) => tx.query("INSERT INTO nowhere VALUES (1)"),
  };
  const { on } = place;
  for (const [name, forget] of Object.entries(forgets)) {
    const work = async (tx: Transaction): Promise<void> => {
      await tx.query("INSERT INTO orders VALUES ('forgotten')");
      forget(tx);
    };
    const running = on === undefined ? outbox.transaction(work) : outbox.transaction(on, work);
    const error = await running.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error, name).toBeInstanceOf(MissingAwaitError);
    expect(error, name).toMatchObject({ code: "MISSING_AWAIT", retriable: false });
    expect(String(error), name).toContain("await");
    expect([...(await keys()), ...(await orders())].join(), name).not.toContain("forgotten");
  }
  // One that was still on its way when the work threw says the same.
  let late: Promise<unknown> = Promise.resolve();
  const thrown = outbox.transaction(async (tx) => {
    late = sleep(5).then(() => outbox.enqueue(tx, message("later")));
    late.catch(() => undefined);
    throw new Error("no");
  });
  await expect(thrown).rejects.toThrow("no");
  await expect(late).rejects.toThrow(/await/);
  await expect(late).rejects.toBeInstanceOf(TransactionRequiredError);
  // Several at a time, awaited together, and one whose failure the work has seen.
  await outbox.transaction(async (tx) => {
    await Promise.all([outbox.enqueue(tx, message("one")), outbox.enqueue(tx, message("two"))]);
    await expect(outbox.enqueue(tx, unencodable)).rejects.toMatchObject({ code: "INVALID_MESSAGE" });
  });
  expect((await keys()).toSorted()).toEqual(["one", "two"]);
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
