/**
 * pending -> sending, with and without the mark. Every statement is fenced (rule: takeover-fence,
 * see `fenceClause`).
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
 * Locks the lease rows (key share), then the message rows in the given order. The shards are ours,
 * so no other relay can claim them; a person's change shows in state and lock_version, checked
 * again after a lock wait. If we die right after it, the rows stay `sending`, and the next owner of
 * the shard returns them to pending.
 *
 * `skipLocked` claims only rows that a CTE could lock, after the lease rows.
 *
 * Writes fixed-size columns only. HOT updates are impossible, since the partial indexes need
 * `state` in their predicates.
 */
function claimText(names: Names, skipLocked: boolean): string {
  const { id, state, deliveryCount, nextRetryAt } = names.column;
  // Without a version, only state and time show that the row is unchanged since the scan.
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
 * Reads back a claim whose answer was lost or whose count differed. Locks the lease rows, so a
 * takeover is either seen here or comes later. Does not wait for a claim still running on the old
 * connection, and reports only committed rows (rule: watched-sending).
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
 * The claim without a mark: the lease rows list the ids in flight (rule: listed-in-flight). Owner
 * and epoch are checked under the lease row's lock, also after waiting for a takeover. If we die
 * right after it, the next owner counts a delivery for the listed ids.
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
