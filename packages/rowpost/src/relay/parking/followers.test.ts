import { describe, expect, it } from "vitest";
import { scannedMessage } from "../../../test/relay/scanned-message.ts";
import { silentLogger } from "../../runtime/logger.ts";
import type { HousekeepingStore, RelayStore } from "../store.ts";
import { createFollowers } from "./followers.ts";

type Calls = Pick<HousekeepingStore, "setBehind" | "park" | "bringBack" | "headsOfBehind">;

function bench(answers: Partial<Calls> = {}, isAble = true) {
  const calls: string[] = [];
  const housekeeping: Calls = {
    async setBehind(request) {
      calls.push(`behind ${request.rows.map(({ id, headId }) => `${id}<${headId}`).join(" ")}`);
      return (await answers.setBehind?.(request)) ?? request.rows.length;
    },
    async bringBack(request) {
      calls.push(`back ${request.headIds.join(" ")}`);
      return (await answers.bringBack?.(request)) ?? 0;
    },
    async park(request) {
      calls.push(`off ${request.rows.map(({ id }) => id).join(" ")}`);
      return (await answers.park?.(request)) ?? request.rows.length;
    },
    async headsOfBehind(request) {
      calls.push(`heads after ${request.afterHeadId}`);
      return (await answers.headsOfBehind?.(request)) ?? [];
    },
  };
  const followers = createFollowers({
    store: { housekeeping } as Pick<RelayStore, "housekeeping">,
    keeper: { fence: () => ({ owner: "me", epochs: ["1"] }) },
    settings: { batchSize: 2, logger: silentLogger, onFailed: "block" },
    isAble: () => isAble,
    wake: () => void calls.push("wake"),
  });
  return { followers, calls };
}

const row = (id: number) => scannedMessage({ id: String(id), orderingKey: "a" });

describe("followers of an ordering key (rule: isolation)", () => {
  it("stand behind their head until it is gone and the key is free, and come back a batch at a time", async () => {
    const counts = [2, 1];
    const { followers, calls } = bench({ bringBack: async () => counts.shift() ?? 0 });
    followers.setBehind(
      [
        { row: row(2), headId: "1" },
        { row: row(3), headId: "1" },
      ],
      false,
    );
    await followers.idle();
    // The head failed and is back in the table.
    followers.keyFreed("a");
    await followers.idle();
    expect(calls).toEqual(["behind 2<1 3<1"]);
    followers.gone("a", "1");
    followers.keyFreed("a");
    await followers.idle();
    followers.keyFreed("a");
    await followers.idle();
    followers.keyFreed("a");
    await followers.idle();
    expect(calls.slice(1)).toEqual(["back 1", "wake", "back 1", "wake"]);
  });

  it("knows for certain what stands behind a head, and is not certain any more when a row would not move", async () => {
    const moved = [1, 0];
    const { followers } = bench({ setBehind: async () => moved.shift() ?? 0 });
    followers.setBehind([{ row: row(2), headId: "1" }], false);
    await followers.idle();
    expect([followers.headOf(row(9)), followers.headOf(row(1))]).toEqual(["1", undefined]);
    followers.setBehind([{ row: row(9), headId: "1" }], false);
    await followers.idle();
    expect(followers.headOf(row(9))).toBeUndefined();
  });

  it("are looked for by housekeeping behind heads that nobody remembers, in turn", async () => {
    const heads = Array.from({ length: 130 }, (_, index) => ({ headId: String(index + 1), stands: index !== 7 }));
    const { followers, calls } = bench({
      headsOfBehind: async ({ afterHeadId, limit }) =>
        heads.filter(({ headId }) => Number(headId) > Number(afterHeadId)).slice(0, limit),
      bringBack: async () => 5,
    });
    expect([await followers.release(), await followers.release(), await followers.release()]).toEqual([5, 0, 5]);
    expect(calls).toEqual(["heads after 0", "back 8", "wake", "heads after 100", "heads after 0", "back 8", "wake"]);
  });

  it("stay where they are in a table that cannot hold them behind", async () => {
    const { followers, calls } = bench({}, false);
    followers.setBehind([{ row: row(2), headId: "1" }], false);
    await followers.idle();
    expect([await followers.release(), calls]).toEqual([0, []]);
  });

  it("are put off in such a table when they fill the rows that are due", async () => {
    const { followers, calls } = bench({}, false);
    const due = { ...row(3), due: true };
    followers.setBehind(
      [
        { row: { ...row(2), due: false }, headId: "1" },
        { row: due, headId: "1" },
      ],
      true,
    );
    await followers.idle();
    expect(calls).toEqual(["off 3"]);
  });

  it("are looked for on, when all heads of a look stand", async () => {
    const heads = Array.from({ length: 330 }, (_, index) => ({ headId: String(index + 1), stands: index !== 320 }));
    const { followers, calls } = bench({
      headsOfBehind: async ({ afterHeadId, limit }) =>
        heads.filter(({ headId }) => Number(headId) > Number(afterHeadId)).slice(0, limit),
      bringBack: async () => 1,
    });
    expect(await followers.release()).toBe(1);
    expect(calls.filter((call) => call.startsWith("back"))).toEqual(["back 321"]);
  });

  it("are not forgotten when their head goes while those of another come back", async () => {
    const { followers, calls } = bench({
      bringBack: async ({ headIds }) => {
        await Promise.resolve();
        if (headIds[0] === "1") {
          followers.gone("a", "5");
          followers.keyFreed("a");
        }
        return 1;
      },
    });
    followers.setBehind(
      [
        { row: row(2), headId: "1" },
        { row: row(6), headId: "5" },
      ],
      false,
    );
    await followers.idle();
    followers.gone("a", "1");
    followers.keyFreed("a");
    await followers.idle();
    expect(calls.filter((call) => call.startsWith("back"))).toEqual(["back 1", "back 5"]);
  });

  it("come back from behind each gone head, although those of one fill a batch", async () => {
    const { followers, calls } = bench({ bringBack: async ({ headIds }) => (headIds[0] === "1" ? 2 : 1) });
    followers.setBehind(
      [
        { row: row(9), headId: "1" },
        { row: row(6), headId: "5" },
      ],
      false,
    );
    await followers.idle();
    followers.gone("a", "1");
    followers.gone("a", "5");
    followers.keyFreed("a");
    await followers.idle();
    // Message 6 is the key's next one: nothing else of the key goes, and frees it, before it.
    expect(calls.filter((call) => call.startsWith("back"))).toEqual(["back 1", "back 5"]);
  });

  it("are not forgotten when a statement fails", async () => {
    let failures = 1;
    const { followers, calls } = bench({
      bringBack: async () => {
        if (failures-- > 0) throw new Error("the database does not answer");
        return 1;
      },
    });
    followers.setBehind([{ row: row(2), headId: "1" }], false);
    await followers.idle();
    followers.gone("a", "1");
    followers.keyFreed("a");
    await followers.idle();
    followers.keyFreed("a");
    await followers.idle();
    expect(calls.slice(1)).toEqual(["back 1", "back 1", "wake"]);
  });
});
