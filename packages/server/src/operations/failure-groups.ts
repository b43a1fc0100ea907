/** Failed messages in groups of one cause: what differs from one to the next is taken out. */
import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import type { MessageAdmin, MessageSummary } from "rowpost";

export interface FailureGroup {
  /** Of code, pattern, topic and type. */
  readonly fingerprint: string;
  readonly code: string;
  readonly pattern: string;
  readonly topic: string;
  readonly type: string;
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
  readonly example: { readonly id: string; readonly reason: string };
}

/** The newest failed messages, so many at most. */
const LOOKED_AT = 10_000;
const PAGE = 1_000;
const BUDGET_MS = 4_000;
const AT_A_STRETCH = 100;
/** Characters of a reason that tell its cause. */
const TELLING = 300;

/** `complete`: there are no other failed messages. */
export async function failureGroups(
  admin: Pick<MessageAdmin, "list">,
): Promise<{ readonly groups: FailureGroup[]; readonly looked: number; readonly complete: boolean }> {
  const groups = new Map<string, FailureGroup>();
  const untilMs = performance.now() + BUDGET_MS;
  let looked = 0;
  let beforeId: string | undefined;
  do {
    const page = await admin.list({
      ...{ filter: { states: ["failed"] }, limit: PAGE, beforeId },
      timeLimitMs: Math.max(1, untilMs - performance.now()),
    });
    for (const [index, message] of page.messages.entries()) {
      put(groups, message);
      // The process has other requests, and in an embedded console a program around it.
      if (index % AT_A_STRETCH === AT_A_STRETCH - 1) await setImmediate();
    }
    looked += page.messages.length;
    beforeId = page.nextBeforeId;
  } while (beforeId !== undefined && looked < LOOKED_AT && performance.now() < untilMs);
  const sorted = [...groups.values()].sort((left, right) => right.count - left.count);
  return { groups: sorted, looked, complete: beforeId === undefined };
}

function put(groups: Map<string, FailureGroup>, message: MessageSummary): void {
  const { failReason, gmtModified, id, lastRetryAt, topic, type } = message;
  const reason = failReason ?? "";
  const { code, pattern } = patternOf(reason);
  const at = lastRetryAt ?? gmtModified;
  const known = JSON.stringify([code, pattern, topic, type]);
  const group = groups.get(known);
  if (group === undefined) {
    const fingerprint = createHash("sha256").update(known).digest("hex").slice(0, 16);
    const example = { id, reason: reason.slice(0, 1_024) };
    groups.set(known, { fingerprint, code, pattern, topic, type, count: 1, firstAt: at, lastAt: at, example });
    return;
  }
  groups.set(known, {
    ...group,
    count: group.count + 1,
    firstAt: at < group.firstAt ? at : group.firstAt,
    lastAt: at > group.lastAt ? at : group.lastAt,
  });
}

const VARIABLE =
  /"[^"]*"|'[^']*'|`[^`]*`|https?:\/\/[^\s"')]+|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b|(?<![\w.-])(?:[\w-]{1,63}\.){1,8}[\w-]{1,63}:\d+|\d+(?:[.,:]\d+)*/gi;

/** The code before the first colon, and the rest of the first line without what varies. */
export function patternOf(reason: string): { readonly code: string; readonly pattern: string } {
  const [, code = ""] = /^([A-Z][A-Z0-9_]{2,63})\b/.exec(reason) ?? [];
  const [line = ""] = reason.slice(code.length).replace(/^:\s*/, "").split("\n", 1);
  return { code, pattern: line.slice(0, TELLING).replace(VARIABLE, "#").replace(/\s+/g, " ").trim() };
}
