/**
 * pending -> sending, and what stands in for it with `sendingMark: "off"`. Every statement is
 * fenced (rule: takeover-fence, see `fenceClause`).
 */

import { inIdOrder } from "../../runtime/compare-ids.ts";
import { hasClaimToken } from "../sql/layouts.ts";
import type { RelayStatements } from "../sql/statements.ts";
import {
  fenceClause,
  fenceParams,
  type Names,
  NOW,
  numberArray,
  textArray,
  tokenParams,
  tokenSource,
} from "./names.ts";

/** Statements that claim. */
export function claimStatements(
  names: Names,
): Pick<RelayStatements, "claim" | "verifyClaim" | "listInFlight" | "readHeld"> {
  const claim = claimText(names, false);
  const unlocked = claimText(names, true);
  const verify = verifyText(names);
  const list = listInFlightText(names);
  const held = readHeldText(names);
  return {
    claim({ fence, rows, skipLocked }) {
      return {
        ...(skipLocked === true ? { name: "claimUnlocked", text: unlocked } : { name: "claim", text: claim }),
        params: [...fenceParams(fence, rows), ...tokenParams(inIdOrder(rows))],
      };
    },
    verifyClaim({ fence, rows }) {
      return {
        name: "verifyClaim",
        text: verify,
        params: [...fenceParams(fence, rows), ...tokenParams(inIdOrder(rows))],
      };
    },
    listInFlight({ fence, idsByShard }) {
      const lists = idsByShard.filter(({ shard }) => fence.epochs[shard] !== undefined);
      return {
        name: "listInFlight",
        text: list,
        params: [
          fence.owner,
          numberArray(lists.map(({ shard }) => shard)),
          numberArray(lists.map(({ shard }) => fence.epochs[shard] ?? null)),
          textArray(lists.map(({ ids }) => numberArray(ids))),
        ],
      };
    },
    readHeld(fence) {
      return {
        name: "readHeld",
        text: held,
        params: fenceParams(
          fence,
          fence.epochs.map((_epoch, shard) => ({ shard })),
        ),
      };
    },
  };
}

/**
 * Locks the lease rows (key share), then the message rows in the order given. Another relay cannot
 * claim them, because the shards are ours; a person's change shows in state and lock_version, which
 * are looked at again after waiting for his lock. If we die right after it: the rows are `sending`,
 * and whoever takes the shard returns them to pending.
 *
 * `skipLocked`: locks what nobody holds in a CTE of its own, after the lease rows, and claims that;
 * a row that a user holds is passed over.
 *
 * Writes fixed-size columns only. No HOT update is possible: `state` stands in the predicates of
 * the partial indexes, as it must, or the scan would walk over everything that was ever sent.
 */
function claimText(names: Names, skipLocked: boolean): string {
  const { id, state, deliveryCount, nextRetryAt } = names.column;
  // Without a version nothing but state and time tells that the row is still what the scan saw.
  const stillDue = hasClaimToken(names.layout) ? "" : ` AND (m.${nextRetryAt} IS NULL OR m.${nextRetryAt} <= ${NOW})`;
  const rows = tokenSource("claimed");
  const free = `, free AS MATERIALIZED (
  SELECT m.${id} FROM ${rows} JOIN fence ON fence.shard = claimed.shard JOIN ${names.table} m ON m.${id} = claimed.id
  ORDER BY m.${id}
  FOR UPDATE OF m SKIP LOCKED)`;
  return `${fenceClause(names)}${skipLocked ? free : ""}
UPDATE ${names.table} m
SET ${state} = ${names.state("sending")}${names.set("deliveryCount", `COALESCE(m.${deliveryCount}, 0) + 1`)}${names.changed}
FROM ${rows}, fence${skipLocked ? ", free" : ""}
WHERE m.${id} = claimed.id AND fence.shard = claimed.shard${skipLocked ? ` AND m.${id} = free.${id}` : ""}
  AND m.${state} = ${names.state("pending")} AND ${names.tokenMatches("claimed")}${stillDue}`;
}

/**
 * Reads a claim back whose answer was lost or whose count differed. The lease rows are locked like
 * in the claim, so that a takeover is either seen here or comes after; a claim that still runs on
 * the old connection holds the message rows, but this read does not wait for it, it reports what
 * has been committed (rule: watched-sending: what is not certainly ours is not published).
 */
function verifyText(names: Names): string {
  const { id, state } = names.column;
  return `${fenceClause(names)}
SELECT m.${id} AS id
FROM ${tokenSource("claimed")}
JOIN fence ON fence.shard = claimed.shard
JOIN ${names.table} m ON m.${id} = claimed.id
WHERE m.${state} = ${names.state("sending")} AND ${names.tokenMatches("claimed")}`;
}

/**
 * The claim without a mark: the ids in flight stand in the lease rows (rule: listed-in-flight). The
 * statement changes the lease row itself, so owner and epoch are checked under its lock; one that
 * waited for a takeover looks again and finds another epoch. If we die right after it: the taker of
 * the shard counts a delivery for the listed ids.
 */
function listInFlightText(names: Names): string {
  return `UPDATE ${names.shardTable} lease
SET in_flight = listed.ids::bigint[]
FROM unnest($2::integer[], $3::bigint[], $4::text[]) AS listed (shard, epoch, ids)
WHERE lease.table_name = ${names.leaseKey} AND lease.owner = $1 AND lease.shard = listed.shard AND lease.epoch = listed.epoch`;
}

function readHeldText(names: Names): string {
  return `${fenceClause(names)}
SELECT shard FROM fence`;
}
