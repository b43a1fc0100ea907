/**
 * Sorts scanned rows by fate. A row that must wait is not claimed and takes no place in the batch
 * (rule: bounded-scan); a row that can never be sent fails with a reason. Pure except for its
 * ports.
 */
import { grouped } from "../../runtime/grouped.ts";
import type { InFlight, InFlightWindow } from "../in-flight.ts";
import type { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { RelaySettings } from "../options.ts";
import type { Follower, Followers } from "../parking/followers.ts";
import type { Room } from "../parking/room.ts";
import type { BrokenRow } from "../parking/set-aside.ts";
import type { ScannedMessage, SuspensionRule } from "../store.ts";
import type { StandsOutside } from "./key-order.ts";
import { prepareMessage } from "./prepare-message.ts";

/** Rows in no list are under way already. */
export interface SortedRows {
  /** May be claimed, apart from the order of their key. */
  readonly candidates: readonly InFlight[];
  /** Recovered so often that each is sent alone (rule: crash-counting). */
  readonly suspects: readonly InFlight[];
  readonly broken: readonly BrokenRow[];
  readonly suspended: ReadonlyMap<SuspensionRule, readonly ScannedMessage[]>;
  /** Behind a known head. */
  readonly behind: readonly Follower[];
  readonly busy: readonly ScannedMessage[];
  /** Their topic takes nothing, or their shard must not be claimed from. */
  readonly passedOver: number;
}

export interface SortRequest {
  readonly rows: readonly ScannedMessage[];
  readonly window: Pick<InFlightWindow, "excludes" | "keyBusy">;
  readonly room: Pick<Room, "of">;
  readonly followers: Pick<Followers, "headOf">;
  /** Such a row waits behind no head. */
  readonly standsOutside: StandsOutside;
  readonly keeper: Pick<LeaseKeeper, "suspensions" | "epochOf">;
  readonly settings: Pick<RelaySettings, "suspectAfter" | "failAfter">;
  /** Held shards that are not given away and have enough lease left. */
  readonly shards: ReadonlySet<number>;
  /** Without delivery_count, recoveries are unknown. */
  readonly countsClaims: boolean;
  /** Without content_type, a body that parses is JSON, any other text. */
  readonly hasContentType: boolean;
  /** Bodies are base64, from a column of bytes. */
  readonly isBinary: boolean;
}

export function sortRows(request: SortRequest): SortedRows {
  const { window, settings, keeper } = request;
  const { suspensions } = keeper;
  const candidates: InFlight[] = [];
  const suspects: InFlight[] = [];
  const broken: BrokenRow[] = [];
  const suspended: { readonly rule: SuspensionRule; readonly row: ScannedMessage }[] = [];
  const behind: Follower[] = [];
  const busy: ScannedMessage[] = [];
  const rooms = new Map<string, number>();
  const roomOf = (topic: string): number => {
    const known = rooms.get(topic) ?? request.room.of(topic);
    rooms.set(topic, known);
    return known;
  };
  let passedOver = 0;
  for (const row of request.rows) {
    if (window.excludes(row.id)) continue;
    const epoch = request.shards.has(row.shard) ? keeper.epochOf(row.shard) : undefined;
    const rule = suspensions.length === 0 ? undefined : ruleFor(row, suspensions);
    const headId = request.standsOutside(row) ? undefined : request.followers.headOf(row);
    if (epoch === undefined) passedOver += 1;
    else if (rule !== undefined) suspended.push({ rule, row });
    else if (row.orderingKey !== null && window.keyBusy(row.orderingKey)) busy.push(row);
    else if (headId !== undefined) behind.push({ row, headId });
    else if (!hasBody(row)) {
      passedOver += 1;
      // Its topic waits for room; otherwise smaller messages would always go first.
      rooms.set(row.topic, 0);
    } else if (roomOf(row.topic) === 0) passedOver += 1;
    else {
      const recoveries = request.countsClaims ? row.deliveryCount - row.retryCount : 0;
      const prepared = prepareMessage(row, request);
      if ("broken" in prepared) broken.push({ row, reason: prepared.broken });
      else if (recoveries >= settings.failAfter) broken.push({ row, reason: tooManyRecoveries(recoveries) });
      else
        (recoveries < settings.suspectAfter ? candidates : suspects).push({ row, outgoing: prepared.outgoing, epoch });
    }
  }
  const byRule = grouped(suspended, ({ rule }) => rule);
  return {
    candidates,
    suspects,
    broken,
    behind,
    busy,
    passedOver,
    suspended: new Map([...byRule].map(([rule, found]) => [rule, found.map(({ row }) => row)])),
  };
}

/** Without a body it is too large for now. */
function hasBody(row: ScannedMessage): row is ScannedMessage & { readonly body: string } {
  return row.body !== null;
}

function tooManyRecoveries(recoveries: number): string {
  return (
    `CRASH_LOOP: claimed ${recoveries} times without an outcome, and the relay died or lost its lease each time; ` +
    "look at its log from those times before you retry this message"
  );
}

function ruleFor(row: ScannedMessage, rules: readonly SuspensionRule[]): SuspensionRule | undefined {
  return rules.find(
    (rule) =>
      (rule.scope === "topic" && rule.value === row.topic) ||
      (rule.scope === "type" && rule.value === row.type) ||
      (rule.scope === "ordering_key" && rule.value === row.orderingKey),
  );
}
