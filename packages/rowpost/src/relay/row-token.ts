/** The version of a row that a statement means (rule: claim-token). */
import { nextVersion } from "../runtime/next-version.ts";
import type { RowToken, ScannedMessage } from "./store.ts";

export function scannedToken(message: ScannedMessage): RowToken {
  return {
    id: message.id,
    shard: message.shard,
    deliveryCount: message.deliveryCount,
    lockVersion: message.lockVersion,
    identityHash: message.identityHash,
  };
}

/** Both counters one up, or as scanned when the claim did not touch the row (sendingMark off). */
export function claimedToken(message: ScannedMessage, sendingMark: "on" | "off"): RowToken {
  const token = scannedToken(message);
  if (sendingMark === "off") return token;
  return { ...token, deliveryCount: token.deliveryCount + 1, lockVersion: nextVersion(token.lockVersion) };
}
