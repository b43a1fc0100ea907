/** Which version of a row a statement means (rule R4). */
import type { RowToken, ScannedMessage } from "./relay-store.ts";

/** Token of a row as it was scanned. */
export function scannedToken(message: ScannedMessage): RowToken {
  return {
    id: message.id,
    shard: message.shard,
    deliveryCount: message.deliveryCount,
    lockVersion: message.lockVersion,
  };
}

/** Token of a row after our claim: both counters one up, or as scanned when the claim did not touch the row (sendingMark off). */
export function claimedToken(message: ScannedMessage, sendingMark: "on" | "off"): RowToken {
  const step = sendingMark === "on" ? 1 : 0;
  return {
    id: message.id,
    shard: message.shard,
    deliveryCount: message.deliveryCount + step,
    lockVersion: message.lockVersion + step,
  };
}

/** Token of a row after it was parked as scanned: parking moves the version, where there is one, and is no claim. */
export function parkedToken(token: RowToken): RowToken {
  return { ...token, lockVersion: token.lockVersion + 1 };
}
