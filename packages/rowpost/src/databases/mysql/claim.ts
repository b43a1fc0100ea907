/**
 * Taking messages: the claim, its read-back, and the list of ids in flight that stands in for the
 * mark.
 */
import { hasClaimToken } from "../sql/layouts.ts";
import type { RelayStatements } from "../sql/statements.ts";
import { whole } from "./clock.ts";
import type { MysqlNames } from "./names.ts";

export function claimStatements(
  names: MysqlNames,
): Pick<RelayStatements, "claim" | "verifyClaim" | "listInFlight" | "readHeld"> {
  const { column, state } = names;
  const count = names.has("deliveryCount") ? `, ${column("deliveryCount")} = ${column("deliveryCount")} + 1` : "";
  // Without a claim token nothing but its state and time tells that the row is still what the scan
  // saw.
  const stillDue = hasClaimToken(names.layout)
    ? ""
    : `AND (${column("nextRetryAt")} IS NULL OR ${column("nextRetryAt")} <= ${names.nowMs})`;

  return {
    /**
     * One multi-table UPDATE. It locks the lease rows it reads in share mode, which a sub-query
     * would not (rule: takeover-fence): a takeover waits for this statement, or this statement
     * waits for the takeover and then finds another owner and changes nothing. Message rows are
     * locked in id order. Fixed-size columns only, so that no row moves in its page. If we die
     * right after it, the rows are `sending` and belong to the next owner of their shard, who
     * recovers them in his takeover.
     */
    claim({ fence, rows, skipLocked }) {
      // Locks what nobody holds before the join begins; LIMIT keeps the optimizer from merging it
      // into the join, which would wait.
      const free =
        skipLocked === true
          ? `\n  STRAIGHT_JOIN (SELECT ${column("id")} AS id FROM ${names.byId} WHERE ${column("id")} IN (${rows.map(({ id }) => id).join(", ")})
    LIMIT ${whole(rows.length)} FOR UPDATE SKIP LOCKED) AS f ON f.id = j.id`
          : "";
      return {
        name: skipLocked === true ? "claimUnlocked" : "claim",
        text: `UPDATE ${names.fencedSource()}${free}
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  SET ${column("state")} = ${state("sending")}${count}${names.bumpVersion}
  WHERE ${column("state")} = ${state("pending")} ${names.tokenMatches} ${stillDue}`,
        params: [names.fencedRows(fence, rows), names.leaseKey, fence.owner],
      };
    },

    verifyClaim({ fence, rows }) {
      return {
        name: "verifyClaim",
        text: `SELECT ${column("id")} AS id
  FROM ${names.fencedSource()}
  STRAIGHT_JOIN ${names.byId} ON ${column("id")} = j.id
  WHERE ${column("state")} = ${state("sending")} ${names.tokenMatches}`,
        params: [names.fencedRows(fence, rows), names.leaseKey, fence.owner],
      };
    },

    /**
     * Fenced like the claim; the lease rows are the rows that it writes. If we die right after it,
     * the next owner finds the ids there (rule: listed-in-flight).
     */
    listInFlight({ fence, idsByShard }) {
      const lists = idsByShard.flatMap(({ shard, ids }) => {
        const epoch = fence.epochs[shard];
        return epoch === undefined ? [] : [`[${shard},${epoch},"[${ids.join(",")}]"]`];
      });
      return {
        name: "listInFlight",
        text: `UPDATE JSON_TABLE(?, '$[*]' COLUMNS (shard INT PATH '$[0]', epoch BIGINT PATH '$[1]', ids MEDIUMTEXT PATH '$[2]')) AS j
  STRAIGHT_JOIN ${names.shards} AS s ON s.table_name = ? AND s.shard = j.shard
  SET s.in_flight = j.ids
  WHERE s.owner = ? AND s.epoch = j.epoch`,
        params: [`[${lists.join(",")}]`, names.leaseKey, fence.owner],
      };
    },

    readHeld(fence) {
      const held = fence.epochs.flatMap((epoch, shard) => (epoch === undefined ? [] : [`[${shard},${epoch}]`]));
      return {
        name: "readHeld",
        text: `SELECT s.shard AS shard
  FROM JSON_TABLE(?, '$[*]' COLUMNS (shard INT PATH '$[0]', epoch BIGINT PATH '$[1]')) AS j
  STRAIGHT_JOIN ${names.shards} AS s ON s.table_name = ? AND s.shard = j.shard
  WHERE s.owner = ? AND s.epoch = j.epoch`,
        params: [`[${held.join(",")}]`, names.leaseKey, fence.owner],
      };
    },
  };
}
