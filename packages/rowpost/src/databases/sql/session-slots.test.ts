import { describe, expect, test } from "vitest";
import { DatabaseConflictError, DatabaseUnavailableError } from "../../runtime/errors.ts";
import type { Session } from "../database.ts";
import { createSessionSlots } from "./session-slots.ts";

/** A session that only knows whether it lives, with a log of its calls. */
function fakeSession(
  name: string,
  diary: string[],
  abandon: () => Promise<void> = () => Promise.resolve(),
): Session & { die(): void } {
  let dead = false;
  return {
    server: { product: "sqlite", version: "0" },
    lock: undefined,
    freeLocks: () => Promise.resolve([]),
    run: () => Promise.resolve({ rows: [], affected: 0 }),
    transaction: () => Promise.reject(new Error("not here")),
    async abandon() {
      dead = true;
      await abandon();
      diary.push(`proved ${name}`);
    },
    close() {
      diary.push(`closed ${name}`);
      return Promise.resolve();
    },
    get dead() {
      return dead;
    },
    die() {
      dead = true;
    },
  };
}

function bench(proveLost: boolean, abandon?: () => Promise<void>) {
  const diary: string[] = [];
  const sessions: (Session & { die(): void })[] = [];
  const slots = createSessionSlots({
    proveLost,
    connect: (slot) => {
      const session = fakeSession(`${slot}${sessions.length}`, diary, abandon);
      sessions.push(session);
      diary.push(`opened ${slot}${sessions.length - 1}`);
      return Promise.resolve(session);
    },
  });
  return { diary, sessions, slots };
}

const nothing = (): Promise<void> => Promise.resolve();

describe("session slots", () => {
  test("each kind of work has one session, opened at its first use", async () => {
    const { diary, slots } = bench(false);
    await Promise.all([slots.use("scan", nothing), slots.use("scan", nothing), slots.use("lease", nothing)]);
    expect(diary).toEqual(["opened scan0", "opened lease1"]);
  });

  test("a lost session is replaced by the next use", async () => {
    const { diary, sessions, slots } = bench(false);
    await slots.use("scan", nothing);
    sessions[0]?.die();
    await slots.use("scan", nothing);
    expect(diary).toEqual(["opened scan0", "opened scan1"]);
  });

  test("when the lease session was lost, the others are opened again after it (rule: one-server)", async () => {
    const { diary, sessions, slots } = bench(false);
    await slots.use("lease", nothing);
    await slots.use("scan", nothing);
    sessions[0]?.die();
    await slots.use("scan", nothing);
    await slots.use("lease", nothing);
    await slots.use("scan", nothing);
    await slots.use("scan", nothing);
    expect(diary).toEqual(["opened lease0", "opened scan1", "opened lease2", "closed scan1", "opened scan3"]);
  });

  test("where no token tells late statements, the lost one is proven dead first, and again until it is (rule: claim-token)", async () => {
    let reachable = false;
    const { diary, sessions, slots } = bench(true, () =>
      reachable ? Promise.resolve() : Promise.reject(new DatabaseUnavailableError("not there")),
    );
    await slots.use("scan", nothing);
    sessions[0]?.die();
    await expect(slots.use("scan", nothing)).rejects.toBeInstanceOf(DatabaseUnavailableError);
    expect(diary).toEqual(["opened scan0"]);
    reachable = true;
    await slots.use("settle", nothing);
    expect(diary).toEqual(["opened scan0", "proved scan0", "opened settle1"]);
  });

  test("abandon proves every session dead, and the next use opens new ones", async () => {
    const { diary, slots } = bench(false);
    await slots.use("scan", nothing);
    await slots.use("settle", nothing);
    await slots.abandon();
    await slots.use("scan", nothing);
    expect(diary).toEqual(["opened scan0", "opened settle1", "proved scan0", "proved settle1", "opened scan2"]);
  });

  test("a conflict is tried again, four times in all; anything else is not", async () => {
    const { slots } = bench(false);
    let tries = 0;
    const conflict = (): Promise<never> => {
      tries += 1;
      return Promise.reject(new DatabaseConflictError("in the way"));
    };
    await expect(slots.retry("scan", conflict)).rejects.toBeInstanceOf(DatabaseConflictError);
    expect(tries).toBe(4);
    await expect(slots.retry("scan", () => Promise.reject(new Error("other")))).rejects.toThrow("other");
  });

  test("close closes what is open", async () => {
    const { diary, slots } = bench(false);
    await slots.use("lease", nothing);
    await slots.close();
    expect(diary).toEqual(["opened lease0", "closed lease0"]);
  });
});
