/** A member of a group, by hand: its leases, and what it writes. */
import assert from "node:assert/strict";
import type {
  ConsumerPlace,
  ConsumptionRecord,
  ConsumptionStore,
  GroupStart,
  Settlement,
} from "../../../src/queue/store.ts";
import type { LeaseStore } from "../../../src/relay/store.ts";
import type { Executor } from "../../../src/transactions/executor.ts";
import type { QueueInstance } from "./bench.ts";

/** Options of a member. */
export interface MemberOptions {
  /** Default `billing`. */
  readonly group?: string | undefined;
  /** Default: a new name. */
  readonly owner?: string | undefined;
  /** Default: the first one. */
  readonly instance?: QueueInstance | undefined;
  /** Where a new group begins. Default `start`. */
  readonly start?: GroupStart | undefined;
  /** Default: the case's topic. */
  readonly topic?: string | undefined;
}

/** What a settle of a member says; what is left out is nothing, or what the member knows. */
export type Settled = Partial<Settlement>;

/** One running member. */
export interface Member {
  /** Who it is. */
  readonly owner: string;
  /** Its side of the store. */
  readonly consumption: ConsumptionStore;
  /** A settlement of partition 0, from `0` on, at the epoch that the member took it with. */
  settlement(changes: Settled): Settlement;
  /** Writes it. */
  settle(changes: Settled): Promise<boolean>;
  /** Writes it in an open transaction. */
  settleIn(tx: Executor, changes: Settled): Promise<boolean>;
  /** Reports itself, and prolongs what it holds; `held`: what is still its own. */
  heartbeat(changes?: Partial<Heartbeat>): ReturnType<LeaseStore["heartbeat"]>;
}

type Heartbeat = Parameters<LeaseStore["heartbeat"]>[0];

/** Where the members of this suite say that they run. */
export const PLACE: Omit<ConsumerPlace, "instance"> = { ip: "10.0.0.8", port: 80 };

let owners = 0;

/** Owners are told apart by their names, as members are by their random ids. */
export function freshOwner(): string {
  owners += 1;
  return `member-${owners}`;
}

/** Joins, and takes all partitions, whoever holds them. */
export async function createMember(
  { group = "billing", owner = freshOwner(), instance, start = "start", topic }: MemberOptions | undefined = {},
  open: (group: string, instance?: QueueInstance, topic?: string) => ConsumptionStore,
): Promise<Member> {
  const consumption = open(group, instance, topic);
  const { leases } = consumption;
  const request = { owner, label: `host:${owner}`, leaseMs: 60_000, instanceTimeoutMs: 60_000 };
  await consumption.join(start);
  const view = await leases.heartbeat({ ...request, held: [] });
  const { acquired } = await leases.acquire({ owner, leaseMs: 60_000, observed: view.leases });
  assert.equal(acquired.length, view.leases.length, "partitions that nobody else wants are taken");
  const epochs = new Map(acquired.map(({ shard, epoch }) => [shard, epoch]));
  const settlement: Member["settlement"] = (changes) => ({
    partition: 0,
    epoch: epochs.get(changes.partition ?? 0) ?? "-1",
    round: 0,
    fromId: "0",
    nextId: undefined,
    mayBeWritten: false,
    records: [],
    redeliveries: [],
    redelivered: [],
    ...changes,
  });
  const place: ConsumerPlace = { ...PLACE, instance: owner };
  return {
    owner,
    consumption,
    settlement,
    settle: (changes) => consumption.settle(owner, settlement(changes), place),
    settleIn: (tx, changes) => consumption.settleIn(tx, owner, settlement(changes), place),
    heartbeat: (changes) => leases.heartbeat({ ...request, held: acquired, ...changes }),
  };
}

/** The id behind this one. */
export function after(id: string | undefined): string {
  assert.ok(id !== undefined);
  return String(BigInt(id) + 1n);
}

/** The first id of the partition behind this one. */
export function nextOfPartition(id: string | undefined): string {
  assert.ok(id !== undefined);
  return String(BigInt(id) + 64n);
}

/** A record of a message that went well at its first attempt. */
export function consumed(id: string | undefined, changes: Partial<ConsumptionRecord> = {}): ConsumptionRecord {
  assert.ok(id !== undefined);
  return {
    id,
    lastId: null,
    messages: 1,
    key: null,
    attempt: 1,
    result: "consumed",
    durationMs: 5,
    error: null,
    ...changes,
  };
}

/** A redelivery that is due at once. */
export function again(
  id: string | undefined,
  changes: Partial<Settlement["redeliveries"][number]> = {},
): Settlement["redeliveries"][number] {
  assert.ok(id !== undefined);
  return { id, attempt: 1, state: "waiting", dueInMs: 0, failReason: "BUSY", ...changes };
}
