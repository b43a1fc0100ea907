import { hasClaimToken } from "../sql/layouts.ts";
import type { RelayStatements } from "../sql/statements.ts";
import { whole } from "./clock.ts";
import type { MysqlNames } from "./names.ts";

export function claimStatements(
  names: MysqlNames,
): Pick<RelayStatements, "claim" | "verifyClaim" | "listInFlight" | "readHeld"> {
  const { column, state } = names;
  const count = names.has("deliveryCount") ? `, ${column("deliveryCount")} = ${column("deliveryCount")} + 1` : "";
  // Without a claim token, only state and time show that the row is unchanged since the scan.
  const stillDue = hasClaimToken(names.layout)
    ? ""
    : `AND (${column("nextRetryAt")} IS NULL OR ${column("nextRetryAt")} <= ${names.nowMs})`;

  return {
    /**
     * One multi-table UPDATE, because it locks the lease rows in share mode, which a sub-query
     * would not (rule: takeover-fence): either a takeover waits for it, or it waits, finds another
     * owner and changes nothing. Locks message rows in id order. Writes fixed-size columns only, so
     * no row moves in its page. If we die right after it, the rows stay `sending`, and the next
     * owner recovers them.
     */
    claim({ fence, rows, skipLocked }) {
      // Locks the free rows. LIMIT keeps the optimizer from merging this into the join, which would
      // block.
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
     * Fenced like the claim, on the lease rows it writes. If we die right after it, the next owner
     * finds the ids there (rule: listed-in-flight).
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
