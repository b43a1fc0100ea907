/** Groups failed messages by cause, removing the parts that vary. */
import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import type { MessageAdmin, MessageSummary, SeenMessage } from "rowpost/admin";

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

/** At most this many of the newest failed messages. */
const LOOKED_AT = 10_000;
const PAGE = 1_000;
const BUDGET_MS = 4_000;
const AT_A_STRETCH = 100;
/** Characters of a reason that identify its cause. */
const TELLING = 300;

type Lister = Pick<MessageAdmin, "list">;

/** Passes the newest failed messages to `look`. `complete`: there are no others. */
async function eachFailure(
  admin: Lister,
  look: (message: MessageSummary) => void,
): Promise<{ readonly looked: number; readonly complete: boolean }> {
  const untilMs = performance.now() + BUDGET_MS;
  let looked = 0;
  let beforeId: string | undefined;
  do {
    const page = await admin.list({
      filter: { states: ["failed"] },
      limit: PAGE,
      beforeId,
      timeLimitMs: Math.max(1, untilMs - performance.now()),
    });
    for (const [index, message] of page.messages.entries()) {
      look(message);
      // Yields to the process's other requests, and to a program around an embedded console.
      if (index % AT_A_STRETCH === AT_A_STRETCH - 1) await setImmediate();
    }
    looked += page.messages.length;
    beforeId = page.nextBeforeId;
  } while (beforeId !== undefined && looked < LOOKED_AT && performance.now() < untilMs);
  return { looked, complete: beforeId === undefined };
}

/** The largest group first. */
export async function failureGroups(
  admin: Lister,
): Promise<{ readonly groups: FailureGroup[]; readonly looked: number; readonly complete: boolean }> {
  const groups = new Map<string, FailureGroup>();
  const looked = await eachFailure(admin, (message) => put(groups, message));
  return { groups: [...groups.values()].sort((left, right) => right.count - left.count), ...looked };
}

/** Current messages of a group, the lowest ids first; all have one topic. */
export async function failuresOf(
  admin: Lister,
  fingerprint: string,
  isMeant: (message: MessageSummary) => boolean = () => true,
): Promise<{ readonly seen: SeenMessage[]; readonly topic: string | undefined }> {
  const found: SeenMessage[] = [];
  let topic: string | undefined;
  await eachFailure(admin, (message) => {
    if (!isMeant(message) || causeOf(message).fingerprint !== fingerprint) return;
    found.push({ id: message.id, lockVersion: message.lockVersion ?? "0" });
    ({ topic } = message);
  });
  return { seen: found.reverse(), topic };
}

function causeOf({ failReason, topic, type }: MessageSummary): Pick<FailureGroup, "code" | "fingerprint" | "pattern"> {
  const { code, pattern } = patternOf(failReason ?? "");
  const known = JSON.stringify([code, pattern, topic, type]);
  return { code, pattern, fingerprint: createHash("sha256").update(known).digest("hex").slice(0, 16) };
}

function put(groups: Map<string, FailureGroup>, message: MessageSummary): void {
  const { failReason, gmtModified, id, lastRetryAt, topic, type } = message;
  const { code, fingerprint, pattern } = causeOf(message);
  const at = lastRetryAt ?? gmtModified;
  const group = groups.get(fingerprint);
  if (group === undefined) {
    const example = { id, reason: (failReason ?? "").slice(0, 1_024) };
    groups.set(fingerprint, { fingerprint, code, pattern, topic, type, count: 1, firstAt: at, lastAt: at, example });
    return;
  }
  groups.set(fingerprint, {
    ...group,
    count: group.count + 1,
    firstAt: at < group.firstAt ? at : group.firstAt,
    lastAt: at > group.lastAt ? at : group.lastAt,
  });
}

const VARIABLE =
  /"[^"]*"|'[^']*'|`[^`]*`|https?:\/\/[^\s"')]+|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b|(?<![\w.-])(?:[\w-]{1,63}\.){1,8}[\w-]{1,63}:\d+|\d+(?:[.,:]\d+)*/gi;
/** In JSON, as many endpoints answer: a name, and its value if that is a text. */
const FIELD = /(?<=[{,]\s*)("[A-Za-z_][\w.-]{0,63}"\s*:\s*)(?:"((?:[^"\\]|\\.)*)("?))?/g;
/** Fields whose text is the cause; other texts are ids and names of one message. */
const TELLS = /^"(?:err(?:or)?s?_?(?:msg|message|description|code)?|message|msg|code|reason|title|detail)"/i;

/** The code before the first colon, and the rest of the first line without the parts that vary. */
export function patternOf(reason: string): { readonly code: string; readonly pattern: string } {
  const [, code = ""] = /^([A-Z][A-Z0-9_]{2,63})\b/.exec(reason) ?? [];
  const [line = ""] = reason.slice(code.length).replace(/^:\s*/, "").split("\n", 1);
  return { code, pattern: withoutVariables(line.slice(0, TELLING)).replace(/\s+/g, " ").trim() };
}

function withoutVariables(line: string): string {
  const parts: string[] = [];
  let at = 0;
  for (const { 0: all, 1: name = "", 2: value, 3: end = "", index } of line.matchAll(FIELD)) {
    const said = value === undefined ? "" : TELLS.test(name) ? `"${value.replace(VARIABLE, "#")}${end}` : "#";
    parts.push(line.slice(at, index).replace(VARIABLE, "#"), name.replace(/\d+/g, "#"), said);
    at = index + all.length;
  }
  return [...parts, line.slice(at).replace(VARIABLE, "#")].join("");
}
