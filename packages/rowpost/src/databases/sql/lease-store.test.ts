import { expect, it } from "vitest";
import type { Statement } from "../../transactions/executor.ts";
import type { Session } from "../database.ts";
import { createLeaseStore } from "./lease-store.ts";
import { createSessionSlots } from "./session-slots.ts";
import type { LeaseStatements } from "./statements.ts";

/** Labels of two heartbeats, on sessions whose `lock` others do or do not see. */
async function labels(lock: string | undefined, isSeen: boolean): Promise<string[]> {
  const reported: string[] = [];
  const session: Session = {
    server: { product: "postgres", version: "0" },
    dead: false,
    lock,
    freeLocks: (locks) => Promise.resolve(isSeen ? [] : [...locks]),
    run: () => Promise.resolve({ rows: [], affected: 0 }),
    transaction: () => Promise.reject(new Error("not here")),
    abandon: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  const nothing: Statement = { name: "nothing", text: "", params: [] };
  const leases: Partial<LeaseStatements> = {
    reportInstance({ label }) {
      reported.push(label);
      return nothing;
    },
    readLeases: () => nothing,
    readInstances: () => nothing,
    readSuspensions: () => nothing,
  };
  const store = createLeaseStore({
    leases: leases as LeaseStatements,
    slots: createSessionSlots({ proveLost: false, connect: () => Promise.resolve(session) }),
    onSessionLost() {},
  });
  for (let beat = 0; beat < 2; beat += 1) {
    await store.heartbeat({ owner: "a", label: "host:1", leaseMs: 1_000, instanceTimeoutMs: 1_000, held: [] });
  }
  return reported;
}

it("a lock that another session of ours sees held is reported with the label", async () => {
  expect(await labels("7", true)).toEqual(["host:1 lock=7", "host:1 lock=7"]);
});

it("a lock that another session of ours finds free is not reported (rule: session-lock)", async () => {
  expect(await labels("7", false)).toEqual(["host:1 lock=", "host:1 lock="]);
});

it("a session without a lock reports none", async () => {
  expect(await labels(undefined, true)).toEqual(["host:1 lock=", "host:1 lock="]);
});
