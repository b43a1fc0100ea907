import { describe, expect, it } from "vitest";
import { inFlightMessage } from "../../../test/relay/scanned-message.ts";
import { RowRefusedError } from "../../runtime/errors.ts";
import { silentMetrics } from "../../runtime/metrics.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import type { Outcome, RelayStore, RowNow } from "../store.ts";
import { createSettler, type Settlement } from "./settler.ts";

function settlement(id: string, epoch = "1"): Settlement {
  return {
    message: { ...inFlightMessage({ id }), epoch },
    result: { status: "sent", messageId: `m-${id}` },
    outcome: {
      id,
      shard: 0,
      deliveryCount: 1,
      lockVersion: "1",
      identityHash: "0",
      toState: "sent",
      messageId: `m-${id}`,
      retryDelta: 0,
      deliveryDelta: 0,
      nextRetryInMs: null,
      failReason: null,
    },
    startedMs: 0,
  };
}

function bench(options: { answers: (() => RowNow[])[]; hasClaimToken?: boolean; leaseMs?: number; epoch?: string }) {
  const clock = createManualClock();
  const calls: string[] = [];
  const written: Outcome[] = [];
  const told = {
    settled: [] as string[],
    fenced: [] as string[],
    lost: [] as string[],
    refused: [] as string[],
    errors: 0,
  };
  const lease = { leftMs: options.leaseMs ?? 60_000 };
  const store: Pick<RelayStore, "settle" | "abandonSessions"> = {
    async settle({ outcomes }) {
      calls.push(`settle ${outcomes.map(({ id }) => id).join(",")}`);
      written.push(...outcomes);
      return (options.answers.shift() ?? (() => []))();
    },
    async abandonSessions() {
      calls.push("abandon");
    },
  };
  const settler = createSettler({
    store,
    clock,
    hasClaimToken: options.hasClaimToken ?? true,
    keeper: {
      fence: () => ({ owner: "me", epochs: ["1"] }),
      epochOf: () => options.epoch ?? "1",
      leftMs: () => lease.leftMs,
    },
    settings: {
      batchSize: 2,
      sendingMark: "on",
      retention: { onSent: "keep", keepMs: 0, archiveForMs: undefined },
      reach: () => {},
      metrics: silentMetrics,
    },
    events: {
      onSettled: (batch) => told.settled.push(...batch.map(({ message }) => message.row.id)),
      onFenced: ({ message }) => told.fenced.push(message.row.id),
      onLost: ({ message }) => told.lost.push(message.row.id),
      onDatabaseError: () => {
        told.errors += 1;
      },
      onRefused: ({ message }, _, isHeld) => told.refused.push(`${message.row.id} ${isHeld ? "held" : "plainer"}`),
    },
  });
  return { settler, clock, calls, written, told, lease };
}

const away = (): RowNow[] => {
  throw new Error("the database does not answer");
};

const refuse = (): RowNow[] => {
  throw new RowRefusedError("too long");
};

describe("settler", () => {
  it("writes what came in meanwhile together, at most two batches at a time", async () => {
    const { settler, calls, told } = bench({ answers: [] });
    for (const id of ["1", "2", "3", "4", "5"]) settler.submit([settlement(id)]);
    await settler.idle();
    expect(calls).toEqual(["settle 1", "settle 2,3,4,5"]);
    expect(told.settled).toEqual(["1", "2", "3", "4", "5"]);
    expect(settler.waiting).toBe(0);
  });

  it("keeps outcomes while the database is away, and writes them when it is back", async () => {
    const { settler, clock, told } = bench({ answers: [away, away] });
    settler.submit([settlement("1")]);
    await clock.advance(2_000);
    await settler.idle();
    expect(told).toEqual({ settled: ["1"], fenced: [], lost: [], refused: [], errors: 2 });
  });

  it("gives an outcome up when its lease has ended: another relay may have the row", async () => {
    const { settler, clock, told, lease } = bench({ answers: [away, away, away] });
    settler.submit([settlement("1")]);
    await clock.advance(60);
    lease.leftMs = 0;
    await clock.advance(2_000);
    await settler.idle();
    expect(told.lost).toEqual(["1"]);
    expect(told.settled).toEqual([]);
  });

  it("never writes an outcome of an earlier epoch of a shard that it has acquired again (rule: claim-token)", async () => {
    const { settler, calls, told } = bench({ answers: [], epoch: "2" });
    settler.submit([settlement("1", "1")]);
    await settler.idle();
    expect(calls).toEqual([]);
    expect(told.lost).toEqual(["1"]);
  });

  it("proves the old session dead before it writes again, where the table has no claim token (rule: claim-token)", async () => {
    const { settler, clock, calls } = bench({ answers: [away], hasClaimToken: false });
    settler.submit([settlement("1")]);
    await clock.advance(2_000);
    await settler.idle();
    expect(calls).toEqual(["settle 1", "abandon", "settle 1"]);
  });

  it("tells the rows that did not match apart, one by one", async () => {
    const { settler, told } = bench({
      answers: [() => [{ id: "2", state: "pending", deliveryCount: 1, lockVersion: "7", identityHash: "0" }]],
    });
    settler.submit([settlement("1"), settlement("2")]);
    await settler.idle();
    expect(told).toMatchObject({ settled: ["1"], fenced: ["2"] });
  });

  it("halves a batch that the table refuses until the odd one is alone, and writes that in plainer words", async () => {
    const { settler, calls, written, told } = bench({
      answers: [() => [], refuse, refuse, refuse, () => []],
    });
    settler.submit([settlement("0")]);
    settler.submit(["1", "2", "3", "4"].map((id) => settlement(id)));
    await settler.idle();
    expect(calls).toEqual([
      "settle 0",
      "settle 1,2,3,4",
      "settle 1,2",
      "settle 1",
      "settle 1",
      "settle 2",
      "settle 3,4",
    ]);
    expect(told).toEqual({
      settled: ["0", "1", "2", "3", "4"],
      fenced: [],
      lost: [],
      refused: ["1 plainer"],
      errors: 0,
    });
    expect(written.filter(({ id }) => id === "1").at(-1)).toMatchObject({ toState: "sent", messageId: null });
  });

  it("holds a row that the table refuses in any words, says so once, and gives it up with the lease", async () => {
    const { settler, clock, calls, told, lease } = bench({
      answers: [refuse, refuse, refuse, () => [], refuse, refuse],
    });
    settler.submit([settlement("1"), settlement("2")]);
    await clock.advance(0);
    expect([told.settled, told.refused, settler.waiting]).toEqual([["2"], ["1 plainer", "1 held"], 1]);
    await clock.advance(500);
    expect(calls).toEqual(["settle 1,2", "settle 1", "settle 1", "settle 2", "settle 1"]);
    lease.leftMs = 0;
    await clock.advance(500);
    await settler.idle();
    expect(told).toMatchObject({ lost: ["1"], refused: ["1 plainer", "1 held"], errors: 0 });
  });

  it("lets the others go while somebody holds a row, writes that again alone, and gives it up with the lease", async () => {
    const held = (id: string) => (): RowNow[] => [
      { id, state: "sending", deliveryCount: 1, lockVersion: "1", identityHash: "0", isHeld: true },
    ];
    const { settler, clock, calls, told, lease } = bench({
      answers: [held("1"), () => [], held("1"), () => [], held("1")],
    });
    settler.submit([settlement("1"), settlement("2")]);
    await clock.advance(0);
    settler.submit([settlement("3")]);
    await clock.advance(0);
    expect([told.settled, settler.waiting]).toEqual([["2", "3"], 1]);
    await clock.advance(500);
    await clock.advance(500);
    expect(told.settled).toEqual(["2", "3", "1"]);
    expect(calls).toEqual(["settle 1,2", "settle 3", "settle 1", "settle 1"]);
    settler.submit([settlement("1")]);
    await clock.advance(0);
    lease.leftMs = 0;
    await clock.advance(500);
    await settler.idle();
    expect([told.lost, told.fenced, settler.waiting]).toEqual([["1"], [], 0]);
  });
});
