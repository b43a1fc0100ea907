/** The words of each rule: what is wrong, the likely cause, and the command to begin with. */
import { diagnosisIn } from "../cli/doctor-chinese.ts";
import { durationText, type Language } from "./durations.ts";
import { QUEUE_EN, QUEUE_ZH } from "./queue-texts.ts";
import { quoted, type RuleText, type Told, type Writer } from "./rule-writer.ts";
import type { Condition } from "./rules.ts";

const EN: Readonly<Record<Condition["rule"] | "unknown", Writer>> = {
  unknown: ({ rule, subject }) => ({
    title: `${rule} ${subject}`.trim(),
    why: "An alert that this version has no words for.",
    command: "rowpost alert list, with the version that evaluates",
  }),
  test: () => ({
    title: "this is a test",
    why: "Somebody tries whether notices arrive here.",
    command: "nothing has to be done",
  }),
  database: () => ({
    title: "the database does not answer",
    why: "Nothing can be enqueued or sent, and no other alert is evaluated.",
    command: "rowpost doctor",
  }),
  schema: () => ({
    title: "the tables do not fit this version",
    why: "A migration is missing, or a right on the tables of rowpost.",
    command: "rowpost doctor, then rowpost migrate",
  }),
  "no-relay": () => ({
    title: "no relay is alive",
    why: "Nothing of this table is sent until one runs.",
    command: "rowpost status, then start a relay: rowpost relay",
  }),
  "shard-unowned": (_, fact) => ({
    title: `${fact("count")} of ${fact("of")} shards belong to no relay`,
    why: "Their messages wait although a relay runs.",
    command: "rowpost status, and the relays' logs",
  }),
  "broker-away": ({ subject, value }, fact) => ({
    title: `broker ${subject} away for ${durationText(value, "en")}`,
    why: `Says the relay ${fact("relay")}. Messages wait and lose no attempt.`,
    command: "rowpost status, then bring the broker back, or mend its address or login",
  }),
  "topic-resting": ({ subject }, fact) => ({
    title: `topic ${subject} takes nothing`,
    why: `Its messages fail one after the other, says the relay ${fact("relay")}; the others go on.`,
    command: `rowpost list --topic ${quoted(subject)}`,
  }),
  failed: ({ subject }, fact) => ({
    title: `${fact("count")}${fact("more") === "1" ? "+" : ""} failed ${subject === "" ? "messages" : `in topic ${subject}`}`,
    why: "Nobody sends them again but the slow retry; later ones of their ordering keys wait.",
    command: `rowpost list --state failed${subject === "" ? "" : ` --topic ${quoted(subject)}`}`,
  }),
  "oldest-due": (_, fact) => ({
    title: `a message of ${fact("topic")} is due for ${durationText(Number(fact("waitingMs")), "en")}`,
    why: "The relay is behind, or something holds this message.",
    command: `rowpost show ${fact("id")}`,
  }),
  unconfirmed: ({ subject }, fact) => ({
    title: `${fact("count")} of type ${subject} not confirmed in time`,
    why: `The oldest is ${durationText(Number(fact("lateMs")), "en")} over its deadline: consumers are behind, or no relay does what is to be done then.`,
    command: `rowpost list --state sent --type ${quoted(subject)}`,
  }),
  "sending-long": ({ subject }, fact) => ({
    title: `${fact("count")} of topic ${subject} stay in sending`,
    why: `The oldest for ${durationText(Number(fact("lateMs")), "en")}: a broker that does not answer, or a relay that cannot write outcomes.`,
    command: `rowpost list --state sending --topic ${quoted(subject)}`,
  }),
  suspension: (_, fact) => ({
    title: `${fact("scope")} ${fact("name")} is suspended without an end`,
    why: `By ${fact("author")}. Its messages wait until somebody resumes it.`,
    command:
      fact("scope") === "relay"
        ? "rowpost resume --all-relay"
        : `rowpost resume --${fact("scope").replace("_", "-")} ${quoted(fact("name"))}`,
  }),
  "operation-failed": (_, fact) => ({
    title: `a bulk ${fact("kind")} of ${fact("author")} has failed`,
    why: "What it has changed stays so; the rest is as it was.",
    command: "rowpost operation list, or the page Operations of the console",
  }),
  ...QUEUE_EN,
  doctor: (told, fact) => doctorText(told, fact, "en"),
};

const ZH: typeof EN = {
  unknown: ({ rule, subject }) => ({
    title: `${rule} ${subject}`.trim(),
    why: "当前版本没有这种告警的文字。",
    command: "用判定告警的那个版本运行 rowpost alert list",
  }),
  test: () => ({
    title: "这是一条测试通知",
    why: "有人在检查通知能否送达此处。",
    command: "无需处理",
  }),
  database: () => ({
    title: "数据库无应答",
    why: "无法写入也无法投递，其他告警暂不判定。",
    command: "rowpost doctor",
  }),
  schema: () => ({
    title: "表结构与当前版本不符",
    why: "缺少迁移，或缺少 rowpost 各表的权限。",
    command: "先 rowpost doctor，再 rowpost migrate",
  }),
  "no-relay": () => ({
    title: "没有存活的投递实例",
    why: "在投递实例启动之前，此表的消息都不会发出。",
    command: "先 rowpost status，再启动投递：rowpost relay",
  }),
  "shard-unowned": (_, fact) => ({
    title: `${fact("of")} 个分片中有 ${fact("count")} 个无人负责`,
    why: "虽有投递实例在运行，这些分片的消息仍在等待。",
    command: "rowpost status，并查看投递实例的日志",
  }),
  "broker-away": ({ subject, value }, fact) => ({
    title: `消息中间件 ${subject} 已失联 ${durationText(value, "zh")}`,
    why: `由投递实例 ${fact("relay")} 报告。消息在等待，不消耗重试次数。`,
    command: "rowpost status，然后恢复中间件，或改正其地址、账号",
  }),
  "topic-resting": ({ subject }, fact) => ({
    title: `主题 ${subject} 暂停发送`,
    why: `其消息接连失败（由投递实例 ${fact("relay")} 报告）；其他主题不受影响。`,
    command: `rowpost list --topic ${quoted(subject)}`,
  }),
  failed: ({ subject }, fact) => ({
    title: `${subject === "" ? "" : `主题 ${subject} 有 `}${fact("count")}${fact("more") === "1" ? "+" : ""} 条消息发送失败`,
    why: "除慢速重试外不会再发；同一顺序键的后续消息在等待。",
    command: `rowpost list --state failed${subject === "" ? "" : ` --topic ${quoted(subject)}`}`,
  }),
  "oldest-due": (_, fact) => ({
    title: `主题 ${fact("topic")} 有消息到期 ${durationText(Number(fact("waitingMs")), "zh")} 仍未发出`,
    why: "投递积压，或这条消息被挡住。",
    command: `rowpost show ${fact("id")}`,
  }),
  unconfirmed: ({ subject }, fact) => ({
    title: `类型 ${subject} 有 ${fact("count")} 条消息逾期未确认`,
    why: `最久的已逾期 ${durationText(Number(fact("lateMs")), "zh")}：消费者积压，或没有投递实例执行超时处理。`,
    command: `rowpost list --state sent --type ${quoted(subject)}`,
  }),
  "sending-long": ({ subject }, fact) => ({
    title: `主题 ${subject} 有 ${fact("count")} 条消息停留在发送中`,
    why: `最久的已 ${durationText(Number(fact("lateMs")), "zh")}：中间件无应答，或投递实例无法写入结果。`,
    command: `rowpost list --state sending --topic ${quoted(subject)}`,
  }),
  suspension: (_, fact) => ({
    title: `${fact("scope")} ${fact("name")} 被挂起且没有结束时间`,
    why: `操作人 ${fact("author")}。在恢复之前其消息一直等待。`,
    command:
      fact("scope") === "relay"
        ? "rowpost resume --all-relay"
        : `rowpost resume --${fact("scope").replace("_", "-")} ${quoted(fact("name"))}`,
  }),
  "operation-failed": (_, fact) => ({
    title: `${fact("author")} 的批量操作 ${fact("kind")} 失败`,
    why: "已改动的保持不变，其余维持原样。",
    command: "rowpost operation list，或控制台的批量操作页",
  }),
  ...QUEUE_ZH,
  doctor: (told, fact) => doctorText(told, fact, "zh"),
};

/** In the words of the doctor; of several with one id the first. */
function doctorText({ subject }: Told, fact: (name: string) => string, language: Language): ReturnType<Writer> {
  const finding = { id: subject, severity: "warning", what: fact("what"), why: fact("why"), mend: "" } as const;
  const { what, why } = diagnosisIn(language, finding);
  const more = Number(fact("count")) - 1;
  return { title: `${subject}: ${what}${more > 0 ? ` (+${more})` : ""}`, why, command: "rowpost doctor" };
}

const WRITERS = { en: EN, zh: ZH };

/** In a few words. */
export function titleOf(told: Told, language: Language): string {
  return written(told, language).title;
}

/** All of it. */
export function lineOf(told: Told, language: Language): RuleText {
  const { facts, peak, subject } = told;
  const isTime = ["broker-away", "oldest-due", "queue-lag"].includes(told.rule);
  const worst = isTime ? durationText(peak, language) : String(peak);
  // The title with the figures at their worst would need the facts of that time.
  return { ...written({ ...told, facts, subject }, language), peak: worst };
}

function written(told: Told, language: Language): Omit<RuleText, "peak"> {
  // An evaluator of a later version may know more rules.
  const writer: Writer = WRITERS[language][told.rule] ?? WRITERS[language].unknown;
  const text = writer(told, (name) => String(told.facts[name] ?? "?"));
  return { ...text, command: text.command.replace(COMMAND, (command) => `${command.trimEnd()} --database URL`) };
}

/** The first command of a step, to its comma; none in quotes. */
const COMMAND = /\browpost [a-z](?:'[^']*'|"[^"]*"|[^,，'"])*/;
