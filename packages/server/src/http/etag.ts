import type { MessageSummary } from "rowpost/admin";
import { Problem } from "./problem.ts";

/** In a table without lock_version the state replaces it. */
export function versionTag({ lockVersion, state }: Pick<MessageSummary, "lockVersion" | "state">): string {
  return `"${lockVersion ?? state}"`;
}

/** What `If-Match` names; a proxy that compresses makes a tag weak. Throws a {@link Problem}. */
export function versionOf(ifMatch: string | null): string {
  if (ifMatch === null || ifMatch.trim() === "")
    throw new Problem("precondition-required", "send If-Match with the ETag of the message as you saw it");
  const [, version] = /^\s*(?:W\/)?"([\w-]{1,32})"\s*$/.exec(ifMatch) ?? [];
  if (version === undefined)
    throw new Problem("invalid-request", 'If-Match must hold one ETag of a message, such as "7"');
  return version;
}
