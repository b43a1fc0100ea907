/**
 * Maps answer codes of brokers and name servers to the scopes of the broker contract.
 *
 * Code 1 covers any broker error, from a wrong signature to a full disk, so its text decides. Codes
 * and texts were provoked on RocketMQ 4.9.7 and 5.5.0, or come from their sources.
 */
import { failed, failedBy } from "../publishing/failures.ts";
import {
  EVERYTHING,
  type Failure,
  LATER,
  MAY_BE_STORED,
  MISSING,
  NEVER,
  NO_RIGHT,
  type Rule,
  UNEXPLAINED,
  WRONG_KEYS,
} from "../rocketmq/rules.ts";
import type { Frame } from "./frames.ts";
import type { Unanswered } from "./link.ts";

const NO_TOPIC: Rule = {
  ...MISSING,
  advice: "create the topic: mqadmin updateTopic -n NAMESERVER -c CLUSTER -t TOPIC",
};
const NO_WRITES: Rule = {
  ...LATER,
  advice:
    "let the broker take writes (brokerPermission=6, mqadmin addWritePerm) or the topic (mqadmin updateTopicPerm)",
};
const NOT_HERE: Rule = {
  ...EVERYTHING,
  advice: "is this a RocketMQ name server (9876 by default), and no broker (10911) nor proxy (8080, 8081)?",
};

const CODES: Readonly<Record<number, readonly [name: string, rule: Rule]>> = {
  2: ["SYSTEM_BUSY", LATER],
  3: ["REQUEST_CODE_NOT_SUPPORTED", NOT_HERE],
  // In the primary's memory, and perhaps nowhere else yet.
  10: ["FLUSH_DISK_TIMEOUT", MAY_BE_STORED],
  // Stored by the primary without a replica to copy it to. This may last, so no attempt is counted.
  // Each probe leaves a copy, so no time is given and the topic rests longer each time.
  11: ["SLAVE_NOT_AVAILABLE", { scope: "destination" }],
  12: ["FLUSH_SLAVE_TIMEOUT", MAY_BE_STORED],
  13: ["MESSAGE_ILLEGAL", NEVER],
  14: ["SERVICE_NOT_AVAILABLE", LATER],
  15: ["VERSION_NOT_SUPPORTED", EVERYTHING],
  17: ["TOPIC_NOT_EXIST", NO_TOPIC],
  215: ["FLOW_CONTROL", LATER],
  501: ["NOT_LEADER_FOR_QUEUE", { ...LATER, routeIsWrong: true }],
  1500: ["GO_AWAY", EVERYTHING],
  [-1006]: ["RPC_TIME_OUT", MAY_BE_STORED],
};

const SUCCESS = 0;
const SYSTEM_ERROR = 1;
const NO_PERMISSION = 16;
/** Stored, but less safely than the broker is configured for. */
const WEAK: ReadonlySet<number> = new Set([10, 11, 12]);

/** The answer is a receipt. `weakly`: accept one of the weak codes too. */
export function isStored({ code }: Frame, weakly: boolean): boolean {
  return code === SUCCESS || (weakly && WEAK.has(code));
}

export function failureOfAnswer({ code, remark }: Frame): Failure {
  const words = wordsOf(remark);
  if (code === SYSTEM_ERROR) return named("SYSTEM_ERROR", words, ruleOfWords(words));
  if (code === NO_PERMISSION) {
    return named("NO_PERMISSION", words, ruleOfRights(words) ?? NO_WRITES);
  }
  const [name, rule] = CODES[code] ?? [`ROCKETMQ_${code}`, UNEXPLAINED];
  return named(name, words, rule);
}

function named(code: string, words: string, rule: Rule): Failure {
  return failedBy(rule, rule === WRONG_KEYS ? "UNAUTHORIZED" : code, words === "" ? code : words);
}

/** One line, without the link to the manual and the position in the server's code. */
function wordsOf(remark: string): string {
  const plain = remark
    .replace(/\s*(?:For more information|See https?:).*$/s, "")
    .replace(/,?\s*org\.apache\.rocketmq\.[\w.$]+\([\w.]+:\d+\).*$/s, "")
    .replace(/(?:org\.apache\.rocketmq|java)\.[\w.]+\.(\w+(?:Exception|Error))/g, "$1")
    .replace(/\s+/g, " ");
  return plain.trim().slice(0, MOST_WORDS);
}

const MOST_WORDS = 400;

const CANNOT_STORE_NOW =
  /disk is full|not available now|\bbusy\b|flow control|in-sync replicas not enough|shutdown|shut down|slave/i;

function ruleOfWords(words: string): Rule {
  const rights = ruleOfRights(words);
  if (rights !== undefined) return rights;
  if (/queueId\[\d+\] is illegal/i.test(words)) return { scope: "message", routeIsWrong: true };
  if (/specified topic/i.test(words)) return { scope: "message", retriable: false };
  if (/time-?out|timed out/i.test(words)) return MAY_BE_STORED;
  return CANNOT_STORE_NOW.test(words) ? LATER : UNEXPLAINED;
}

/** A wrong key concerns everything, a missing permission one topic. Codes vary by version. */
function ruleOfRights(words: string): Rule | undefined {
  if (/no (?:default )?permission|has no .*permission|permission denied/i.test(words)) return NO_RIGHT;
  const isLogin = /signature|AclException|access-?key|acl config|user:.* is not found|username|authentica|credential/i;
  return isLogin.test(words) ? WRONG_KEYS : undefined;
}

export function failureOfSilence({ written, code, reason }: Unanswered): Failure {
  return failed(written ? "unknown" : "connection", code, reason);
}

/** The same for a request that stores nothing: a query or a greeting. */
export function failureOfQuestion(unanswered: Unanswered): Failure {
  return failureOfSilence({ ...unanswered, written: false });
}
