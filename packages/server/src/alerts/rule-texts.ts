/** The words of each rule: what is wrong, the likely cause, and the command to begin with. */
import { diagnosisIn } from "../cli/doctor-chinese.ts";
import type { Condition } from "./rules.ts";
import { durationText, type Language, quoted } from "./wording.ts";

/** The words of a rule. */
export interface RuleText {
  readonly title: string;
  readonly why: string;
  /** What is run first. */
  readonly command: string;
  readonly peak: string;
}

type Told = Condition & { readonly peak: number };
type Fact = (name: string) => string;
type Writer = (told: Told, fact: Fact) => Omit<RuleText, "peak">;

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
  "queue-lag": (_, fact) => ({
    title: `group ${fact("group")} of topic ${fact("topic")} is ${durationText(Number(fact("lateMs")), "en")} behind`,
    why:
      fact("member") === ""
        ? `Nobody holds partition ${fact("partition")}: no consumer of the group runs, or none takes it.`
        : `${fact("member")} holds partition ${fact("partition")}: its handler hangs, or is slower than the messages come.`,
    command: `rowpost queue groups ${place(fact)}`,
  }),
  "queue-dead": (_, fact) => ({
    title: `${dead(fact)} dead ${fact("dead") === "1" ? "letter" : "letters"} of group ${fact("group")} in topic ${fact("topic")}`,
    why: "The group has given these messages up after their last attempt; they wait for a person.",
    command: `rowpost queue dead ${place(fact)}`,
  }),
  "queue-paused": (_, fact) => ({
    title: `group ${fact("group")} of topic ${fact("topic")} is paused`,
    why: `By ${fact("author")}. Its messages wait until somebody resumes it.`,
    command: `rowpost queue resume ${place(fact)}`,
  }),
  "queue-tables": (_, fact) =>
    fact("kind") === "missing"
      ? {
          title: `topic ${fact("topic")} has no tables for ${fact("month")}`,
          why: "Running consumers make them ahead: none runs, or none may CREATE. Appends that may not either will fail.",
          command: tablesCommand(fact),
        }
      : {
          title: `topic ${fact("topic")} still has ${fact("month")}, which is past its retention`,
          why: "Running consumers drop it: none runs, none may DROP, or a group still needs it.",
          command: tablesCommand(fact),
        },
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
  "queue-lag": (_, fact) => ({
    title: `主题 ${fact("topic")} 的消费组 ${fact("group")} 落后 ${durationText(Number(fact("lateMs")), "zh")}`,
    why:
      fact("member") === ""
        ? `分区 ${fact("partition")} 没有成员持有：这个组没有消费者在运行，或没有成员接手。`
        : `分区 ${fact("partition")} 由 ${fact("member")} 持有：处理函数卡住，或者处理得比消息来得慢。`,
    command: `rowpost queue groups ${place(fact)}`,
  }),
  "queue-dead": (_, fact) => ({
    title: `主题 ${fact("topic")} 的消费组 ${fact("group")} 有 ${dead(fact)} 条死信`,
    why: "最后一次尝试也失败之后，这个组放弃了这些消息，等待人工处理。",
    command: `rowpost queue dead ${place(fact)}`,
  }),
  "queue-paused": (_, fact) => ({
    title: `主题 ${fact("topic")} 的消费组 ${fact("group")} 处于暂停`,
    why: `操作人 ${fact("author")}。在恢复之前其消息一直等待。`,
    command: `rowpost queue resume ${place(fact)}`,
  }),
  "queue-tables": (_, fact) =>
    fact("kind") === "missing"
      ? {
          title: `主题 ${fact("topic")} 没有 ${fact("month")} 的月表`,
          why: "月表由运行中的消费者提前建好：没有消费者在运行，或者没有建表权限。没有建表权限的写入会失败。",
          command: tablesCommand(fact),
        }
      : {
          title: `主题 ${fact("topic")} 的 ${fact("month")} 已超过保留期，仍未删除`,
          why: "月表由运行中的消费者删除：没有消费者在运行、没有删表权限，或者还有消费组需要它。",
          command: tablesCommand(fact),
        },
  doctor: (told, fact) => doctorText(told, fact, "zh"),
};

/** As a command takes them. */
function place(fact: Fact): string {
  return `${quoted(fact("topic"))} ${quoted(fact("group"))}`;
}

function dead(fact: Fact): string {
  return `${fact("dead")}${fact("more") === "1" ? "+" : ""}`;
}

/** Topics need no quotes. */
function tablesCommand(fact: Fact): string {
  return fact("kind") === "missing"
    ? `rowpost queue groups ${fact("topic")}`
    : `rowpost queue drop-month ${fact("topic")} --past-retention`;
}

/** In the words of the doctor; of several with one id the first. */
function doctorText({ subject }: Told, fact: Fact, language: Language): ReturnType<Writer> {
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
