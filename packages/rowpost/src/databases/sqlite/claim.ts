/**
 * pending -> sending, and its replacement with `sendingMark: "off"`. Every statement is fenced (see
 * `fenceCondition`).
 */
import { hasClaimToken } from "../sql/layouts.ts";
import type { RelayStatements } from "../sql/statements.ts";
import { fenceCondition, fenceParams, jsonIds, type Names, NOW, tokenRows, tokenSource } from "./names.ts";

export function claimStatements(
  names: Names,
): Pick<RelayStatements, "claim" | "verifyClaim" | "listInFlight" | "readHeld"> {
  const { id, state, deliveryCount, nextRetryAt } = names.column;
  const { shardTable, leaseKey } = names;
  const fence = fenceCondition(names);
  // Without a version, only state and time show that the row is unchanged since the scan.
  const stillDue = hasClaimToken(names.layout)
    ? ""
    : `\n  AND (m.${nextRetryAt} IS NULL OR m.${nextRetryAt} <= ${NOW})`;
  /*
   * One statement is one transaction. The shard is ours, so no other relay can claim the rows; a
   * person's change shows in state and lock_version. If we die right after it, the rows stay
   * `sending`, and the next owner of the shard returns them to pending.
   */
  const claim = `UPDATE ${names.table} AS m
SET ${state} = ${names.state("sending")}${names.set("deliveryCount", `COALESCE(m.${deliveryCount}, 0) + 1`)}${names.changed}
FROM ${tokenSource()} AS claimed
WHERE m.${id} = claimed.id AND ${names.isIn("pending")} AND ${names.tokenMatches("claimed")}${stillDue}
  AND ${fence}`;
  const verify = `SELECT CAST(m.${id} AS TEXT) AS id
FROM ${tokenSource()} AS claimed
CROSS JOIN ${names.table} AS m ON m.${id} = claimed.id
WHERE ${names.isIn("sending")} AND ${names.tokenMatches("claimed")}
  AND ${fence}`;
  // The claim without a mark (rule: listed-in-flight). The same statement checks owner and epoch
  // and writes the list.
  const list = `UPDATE ${shardTable} SET in_flight = ? WHERE table_name = ${leaseKey} AND shard = 0 AND owner = ? AND epoch = ?`;
  const held = `SELECT shard FROM ${shardTable} WHERE table_name = ${leaseKey} AND shard = 0 AND owner = ? AND epoch = ?`;
  return {
    claim: ({ fence: by, rows }) => ({
      name: "claim",
      text: claim,
      params: [tokenRows(rows), ...fenceParams(by)],
    }),
    verifyClaim: ({ fence: by, rows }) => ({
      name: "verifyClaim",
      text: verify,
      params: [tokenRows(rows), ...fenceParams(by)],
    }),
    listInFlight: ({ fence: by, idsByShard }) => {
      const ids = idsByShard.find(({ shard }) => shard === 0)?.ids ?? [];
      return { name: "listInFlight", text: list, params: [jsonIds(ids), ...fenceParams(by)] };
    },
    readHeld: (by) => ({ name: "readHeld", text: held, params: fenceParams(by) }),
  };
}
