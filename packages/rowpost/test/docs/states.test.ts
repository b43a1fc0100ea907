/**
 * docs/states.md and its Chinese page are written from the table of transitions.
 * `npx vitest run states -u` writes them anew.
 */
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { MESSAGE_STATES, STATE_WORDS_ZH, TRANSITIONS } from "../../src/message/states.ts";

const WHO_ZH: Readonly<Record<(typeof TRANSITIONS)[number]["by"][number], string>> = {
  relay: "relay",
  housekeeping: "后台维护",
  operator: "运维人员",
  consumer: "消费者",
};

/** By the English text, so that one that changes asks for its Chinese one. */
const WRITES_ZH: Readonly<Record<string, string>> = {
  "delivery_count + 1": "delivery_count + 1",
  "message_id, sent_at, last_retry_at, next_retry_at = confirmation deadline or NULL, fail_reason = NULL":
    "message_id、sent_at、last_retry_at；next_retry_at = 确认期限或 NULL；fail_reason = NULL",
  "retry_count + 1, delivery_count = retry_count, fail_reason, last_retry_at, next_retry_at = backoff, never below deliver_at":
    "retry_count + 1、delivery_count = retry_count、fail_reason、last_retry_at；next_retry_at = 退避时间，不早于 deliver_at",
  "delivery_count - 1: not started, connection or destination away, or the relay stops":
    "delivery_count - 1：没有开始发送，连接断开或目的地不可用，或 relay 正在停止",
  "nothing else: its relay lost the shard, or no window holds the row (rule: watched-sending)":
    "不写别的：它的 relay 失去了分片，或没有任何窗口持有这一行（规则：watched-sending）",
  "fail_reason, next_retry_at = slow retry or NULL; from pending only for a row that cannot be sent as it is":
    "fail_reason；next_retry_at = 慢速重试时间或 NULL；只有这一行本身无法发送时才从 pending 直接变更",
  "next_retry_at = NULL; retry_count stays, so the next failure is `failed` again":
    "next_retry_at = NULL；retry_count 不变，所以再失败一次就又是 `failed`",
  "retry_count = 0, delivery_count = 0, next_retry_at = deliver_at when that is ahead, else NULL":
    "retry_count = 0、delivery_count = 0；next_retry_at = 尚未到的 deliver_at，否则为 NULL",
  "consumed_at, next_retry_at = NULL": "consumed_at；next_retry_at = NULL",
  "retry_count + 1, fail_reason, next_retry_at = NULL": "retry_count + 1、fail_reason；next_retry_at = NULL",
  "retry_count + 1, fail_reason, next_retry_at = slow retry or NULL":
    "retry_count + 1、fail_reason；next_retry_at = 慢速重试时间或 NULL",
  "consumed_at; a settle that comes later only fills message_id and sent_at":
    "consumed_at；之后才到的发送结果只补上 message_id 和 sent_at",
  "next_retry_at = until or NULL; by a rule fail_reason = the rule and its reason":
    "next_retry_at = 截止时间或 NULL；由规则挂起时 fail_reason = 规则及其原因",
  "next_retry_at = deliver_at when that is ahead, else NULL (rule: delay-is-not-retry)":
    "next_retry_at = 尚未到的 deliver_at，否则为 NULL（规则：delay-is-not-retry）",
  "as settleSent": "同 settleSent",
  "as settleRetry": "同 settleRetry",
  "as settleFailed": "同 settleFailed",
};

const ENGLISH = [
  "# States and transitions",
  "",
  "[中文](states.zh-CN.md)",
  "",
  "Written from `TRANSITIONS` in `packages/rowpost/src/message/states.ts`. What is not in the table",
  "does not exist: every statement that changes a state names its allowed-from states, and a row in",
  "another state is reported as a conflict, not changed.",
  "",
  "| number | state | 中文 |",
];
const CHINESE = [
  "# 状态与流转",
  "",
  "[English](states.md)",
  "",
  "本页由 `packages/rowpost/src/message/states.ts` 里的 `TRANSITIONS` 生成。",
  "表里没有的变更不存在：每条改变状态的语句都写明允许的原状态；",
  "行若处于别的状态，会报告为冲突，不会被改动。",
  "",
  "| 数值 | 状态 | 中文 |",
];

function page(
  head: readonly string[],
  columns: string,
  unmarked: string,
  row: (transition: (typeof TRANSITIONS)[number]) => { readonly by: string; readonly writes: string },
): string {
  const states = MESSAGE_STATES.map((state, number) => `| ${number} | \`${state}\` | ${STATE_WORDS_ZH[state]} |`);
  const rows = TRANSITIONS.map((transition) => {
    const { name, from, to, withoutSendingMark } = transition;
    const { by, writes } = row(transition);
    return `| ${name} | ${from.join(", ")} | ${to} | ${by} | ${writes}${withoutSendingMark === true ? unmarked : ""} |`;
  });
  return [...head, "| --- | --- | --- |", ...states, "", columns, "| --- | --- | --- | --- | --- |", ...rows, ""].join(
    "\n",
  );
}

const fileOf = (name: string): string => fileURLToPath(new URL(`../../../../docs/${name}`, import.meta.url));

it("docs/states.md says what the code does", async () => {
  const english = page(
    ENGLISH,
    "| transition | from | to | by | writes, besides state, lock_version + 1 and gmt_modified |",
    ' (only with `sendingMark: "off"`)',
    ({ by, writes }) => ({ by: by.join(", "), writes }),
  );
  await expect(english).toMatchFileSnapshot(fileOf("states.md"));
});

it("docs/states.zh-CN.md says the same", async () => {
  const chinese = page(
    CHINESE,
    "| 变更 | 从 | 到 | 由谁 | 除 state、lock_version + 1、gmt_modified 之外写什么 |",
    '（仅 `sendingMark: "off"`）',
    ({ by, writes }) => {
      const text = WRITES_ZH[writes];
      if (text === undefined) throw new Error(`no Chinese text here for: ${writes}`);
      return { by: by.map((who) => WHO_ZH[who]).join("、"), writes: text };
    },
  );
  await expect(chinese).toMatchFileSnapshot(fileOf("states.zh-CN.md"));
});

it("each transition has a name of its own", () => {
  expect(new Set(TRANSITIONS.map(({ name }) => name)).size).toBe(TRANSITIONS.length);
});
