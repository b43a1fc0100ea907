/**
 * Options that are settings of the library's relay, one entry each. A missing option keeps the
 * library's default.
 */
import { type Command, Option } from "commander";
import type { RelayOptions, RetentionOptions, RetryPolicy } from "rowpost";
import { duration, InputError, numberFrom, wholeNumber } from "./arguments.ts";
import { collectConfirmed } from "./confirm-options.ts";

type SettingOf<Name extends "retry" | "retention" | "poll", Options> = `${Name}.${keyof Options & string}`;

interface RelaySetting {
  readonly flags: string;
  readonly to:
    | keyof RelayOptions
    | SettingOf<"retry", RetryPolicy>
    | SettingOf<"retention", RetentionOptions>
    | SettingOf<"poll", NonNullable<RelayOptions["poll"]>>;
  readonly value: ((text: string, before: never) => unknown) | readonly string[];
  readonly en: string;
  readonly zh: string;
}

const FLOW: readonly RelaySetting[] = [
  {
    flags: "--batch-size <n>",
    to: "batchSize",
    value: wholeNumber(1, 10_000),
    en: "messages of one scan and claim (default: 500)",
    zh: "一次扫描和认领的消息数（默认 500）",
  },
  {
    flags: "--window <n>",
    to: "windowSize",
    value: wholeNumber(1, 100_000),
    en: "messages of one topic in flight at most (default: 4 batches)",
    zh: "一个主题最多的在途消息数（默认 4 批）",
  },
  {
    flags: "--publish-timeout <duration>",
    to: "publishTimeoutMs",
    value: duration,
    en: "a publish without an answer is given up (default: 10s)",
    zh: "发送多久没有应答就放弃（默认 10s）",
  },
  {
    flags: "--lease <duration>",
    to: "leaseMs",
    value: duration,
    en: "how long a dead relay keeps its shards (default: 30s)",
    zh: "死掉的 relay 占着分片多久（默认 30s）",
  },
  {
    flags: "--heartbeat <duration>",
    to: "heartbeatMs",
    value: duration,
    en: "interval of lease renewals (default: 2s)",
    zh: "续租的间隔（默认 2s）",
  },
  {
    flags: "--sending-mark <mark>",
    to: "sendingMark",
    value: ["on", "off"],
    en: "off: faster, rows stay pending while they are sent",
    zh: "off：更快，发送期间行仍是 pending",
  },
  {
    flags: "--poll-min <duration>",
    to: "poll.minMs",
    value: duration,
    en: "shortest wait between looks at the table (default: 10ms)",
    zh: "两次查表之间最短等多久（默认 10ms）",
  },
  {
    flags: "--poll-max <duration>",
    to: "poll.maxMs",
    value: duration,
    en: "longest wait when nothing happens (default: 250ms)",
    zh: "空闲时最长等多久（默认 250ms）",
  },
  {
    flags: "--drain-timeout <duration>",
    to: "drainTimeoutMs",
    value: duration,
    en: "time that a stop gives to what is in flight (default: publish timeout + 5s)",
    zh: "停止时给在途消息的时间（默认：发送超时 + 5s）",
  },
];

const FAILURES: readonly RelaySetting[] = [
  {
    flags: "--max-attempts <n>",
    to: "retry.maxAttempts",
    value: wholeNumber(1, 10_000),
    en: "attempts until a message is failed (default: 16)",
    zh: "尝试多少次之后算失败（默认 16）",
  },
  {
    flags: "--backoff-base <duration>",
    to: "retry.baseMs",
    value: duration,
    en: "longest wait after the first failure (default: 1s)",
    zh: "第一次失败之后最长等多久（默认 1s）",
  },
  {
    flags: "--backoff-factor <number>",
    to: "retry.factor",
    value: numberFrom(1),
    en: "each longest wait is the one before times this (default: 2)",
    zh: "最长等待每次乘以这个数（默认 2）",
  },
  {
    flags: "--backoff-max <duration>",
    to: "retry.maxMs",
    value: duration,
    en: "no wait is longer (default: 10m)",
    zh: "等待不会超过这个时间（默认 10m）",
  },
  {
    flags: "--slow-retry-every <duration>",
    to: "retry.slowRetryEveryMs",
    value: duration,
    en: "failed messages are tried again this often; 0: never (default: 6h)",
    zh: "失败的消息每隔多久再试一次；0 表示不再试（默认 6h）",
  },
  {
    flags: "--slow-retry-for <duration>",
    to: "retry.slowRetryForMs",
    value: duration,
    en: "until they are this old (default: 7d)",
    zh: "再试到消息多旧为止（默认 7d）",
  },
  {
    flags: "--on-failed <action>",
    to: "onFailed",
    value: ["block", "skip"],
    en: "what a failed message does to later ones of its ordering key (default: block)",
    zh: "失败的消息怎样影响同一顺序键后面的消息（默认 block：挡住）",
  },
  {
    flags: "--on-sent <action>",
    to: "retention.onSent",
    value: ["keep", "archive", "delete"],
    en: "what happens to sent messages (default: keep)",
    zh: "已发送的消息怎样处理（默认 keep：保留）",
  },
  {
    flags: "--keep <duration>",
    to: "retention.keepMs",
    value: duration,
    en: "with --on-sent archive or delete: only after this time (default: 0)",
    zh: "与 --on-sent archive 或 delete 一起：过了这个时间才处理（默认 0）",
  },
  {
    flags: "--confirm <type=duration>",
    to: "types",
    value: collectConfirmed,
    en: "consumers confirm messages of this type within this time, else they are sent again; with :fail or :alert at its end they fail, or are only told of; may be given several times",
    zh: "消费者要在这段时间内确认这个类型的消息，否则重发；末尾写 :fail 或 :alert 则变为失败或只提醒；可以写多次",
  },
  {
    flags: "--archive-for <duration>",
    to: "retention.archiveForMs",
    value: duration,
    en: "delete archived messages after this time (default: never)",
    zh: "归档的消息过多久删除（默认不删）",
  },
];

const SETTINGS: readonly RelaySetting[] = [...FLOW, ...FAILURES];

export const RELAY_SETTINGS_CHINESE: Readonly<Record<string, string>> = Object.fromEntries(
  SETTINGS.map(({ en, zh }) => [en, zh]),
);

export function addRelaySettings(command: Command): void {
  for (const { en, flags, value } of SETTINGS) {
    const option = new Option(flags, en);
    if (typeof value === "function") option.argParser(value as (text: string, before: unknown) => unknown);
    else option.choices(value);
    command.addOption(option);
  }
}

export function relaySettings(flags: object): Omit<RelayOptions, "database" | "broker"> {
  const given: Readonly<Record<string, unknown>> = { ...flags };
  const settings: Record<string, unknown> = {};
  for (const { flags: option, to } of SETTINGS) {
    const value = given[new Option(option).attributeName()];
    if (value === undefined) continue;
    const [name = "", inner] = to.split(".");
    settings[name] = inner === undefined ? value : { ...(settings[name] as object | undefined), [inner]: value };
  }
  const { archiveForMs, keepMs, onSent = "keep" } = (settings["retention"] ?? {}) as Partial<RetentionOptions>;
  if ((keepMs !== undefined || archiveForMs !== undefined) && onSent === "keep")
    throw new InputError("--keep and --archive-for do nothing without --on-sent archive or --on-sent delete");
  return settings;
}
