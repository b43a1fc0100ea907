/**
 * Texts of each rule in English and Chinese: name, problem, likely cause, and the first command to
 * run.
 */
import type { Language } from "../language.ts";
import type { Condition, RuleName } from "./rules.ts";
import { durationText, quoted } from "./wording.ts";

type Words = string | readonly [en: string, zh: string];
type Fact = (name: string) => string;

/** `{name}` is a fact: a duration if it ends with Ms; quoted for a shell in the command. */
interface Texts {
  readonly title: Words | ((fact: Fact) => Words);
  readonly why: Words | ((fact: Fact) => Words);
  readonly command: Words | ((fact: Fact) => Words);
  readonly growsInMs?: true;
}

/** `name`: for choosing a rule and for the history. */
const RULES: Readonly<Record<RuleName, Texts & { readonly name: Words }>> = {
  database: {
    name: ["Database does not answer", "数据库无应答"],
    title: ["the database does not answer", "数据库无应答"],
    why: [
      "Nothing can be enqueued or sent, and no other alert is evaluated.",
      "无法写入也无法投递，其他告警暂不判定。",
    ],
    command: "rowpost doctor",
  },
  schema: {
    name: ["Tables or rights do not fit", "表结构或权限不符"],
    title: ["the tables do not fit this version", "表结构与当前版本不符"],
    why: ["A migration is missing, or a right on the tables of rowpost.", "缺少迁移，或缺少 rowpost 各表的权限。"],
    command: ["rowpost doctor, then rowpost migrate", "先 rowpost doctor，再 rowpost migrate"],
  },
  "no-relay": {
    name: ["No relay is alive", "没有存活的投递实例"],
    title: ["no relay is alive", "没有存活的投递实例"],
    why: ["Nothing of this table is sent until one runs.", "在投递实例启动之前，此表的消息都不会发出。"],
    command: ["rowpost status, then start a relay: rowpost relay", "先 rowpost status，再启动投递：rowpost relay"],
  },
  "shard-unowned": {
    name: ["Shards without a relay", "分片无人负责"],
    title: ["{count} of {of} shards belong to no relay", "{of} 个分片中有 {count} 个无人负责"],
    why: ["Their messages wait although a relay runs.", "虽有投递实例在运行，这些分片的消息仍在等待。"],
    command: ["rowpost status, and the relays' logs", "rowpost status，并查看投递实例的日志"],
  },
  "broker-away": {
    name: ["Broker away", "消息中间件失联"],
    title: ["broker {subject} away for {valueMs}", "消息中间件 {subject} 已失联 {valueMs}"],
    why: [
      "Says the relay {relay}. Messages wait and lose no attempt.",
      "由投递实例 {relay} 报告。消息在等待，不消耗重试次数。",
    ],
    command: [
      "rowpost status, then bring the broker back, or mend its address or login",
      "rowpost status，然后恢复中间件，或改正其地址、账号",
    ],
    growsInMs: true,
  },
  "topic-resting": {
    name: ["Topic takes nothing", "主题暂停发送"],
    title: ["topic {subject} takes nothing", "主题 {subject} 暂停发送"],
    why: [
      "Its messages fail one after the other, says the relay {relay}; the others go on.",
      "其消息接连失败（由投递实例 {relay} 报告）；其他主题不受影响。",
    ],
    command: "rowpost list --topic {subject}",
  },
  failed: {
    name: ["Failed messages", "消息发送失败"],
    title: (fact) =>
      fact("subject") === ""
        ? ["{count}{+} failed messages", "{count}{+} 条消息发送失败"]
        : ["{count}{+} failed in topic {subject}", "主题 {subject} 有 {count}{+} 条消息发送失败"],
    why: [
      "Nobody sends them again but the slow retry; later ones of their ordering keys wait.",
      "除慢速重试外不会再发；同一顺序键的后续消息在等待。",
    ],
    command: (fact) => `rowpost list --state failed${fact("subject") === "" ? "" : " --topic {subject}"}`,
  },
  "oldest-due": {
    name: ["Message overdue", "消息到期未发"],
    title: ["a message of {topic} is due for {waitingMs}", "主题 {topic} 有消息到期 {waitingMs} 仍未发出"],
    why: ["The relay is behind, or something holds this message.", "投递积压，或这条消息被挡住。"],
    command: "rowpost show {id}",
    growsInMs: true,
  },
  unconfirmed: {
    name: ["Not confirmed in time", "逾期未确认"],
    title: ["{count} of type {subject} not confirmed in time", "类型 {subject} 有 {count} 条消息逾期未确认"],
    why: [
      "The oldest is {lateMs} over its deadline: consumers are behind, or no relay does what is to be done then.",
      "最久的已逾期 {lateMs}：消费者积压，或没有投递实例执行超时处理。",
    ],
    command: "rowpost list --state sent --type {subject}",
  },
  "sending-long": {
    name: ["Long in sending", "长时间发送中"],
    title: ["{count} of topic {subject} stay in sending", "主题 {subject} 有 {count} 条消息停留在发送中"],
    why: [
      "The oldest for {lateMs}: a broker that does not answer, or a relay that cannot write outcomes.",
      "最久的已 {lateMs}：中间件无应答，或投递实例无法写入结果。",
    ],
    command: "rowpost list --state sending --topic {subject}",
  },
  suspension: {
    name: ["Suspended without an end", "挂起没有结束时间"],
    title: ["{scope} {name} is suspended without an end", "{scope} {name} 被挂起且没有结束时间"],
    why: ["By {author}. Its messages wait until somebody resumes it.", "操作人 {author}。在恢复之前其消息一直等待。"],
    command: (fact) =>
      `rowpost resume ${fact("scope") === "relay" ? "--all-relay" : `--${fact("scope").replace("_", "-")} {name}`}`,
  },
  "queue-lag": {
    name: ["Consumer group behind", "消费组落后"],
    title: ["group {group} of topic {topic} is {lateMs} behind", "主题 {topic} 的消费组 {group} 落后 {lateMs}"],
    why: (fact) =>
      fact("member") === ""
        ? [
            "Nobody holds partition {partition}: no consumer of the group runs, or none takes it.",
            "分区 {partition} 没有成员持有：这个组没有消费者在运行，或没有成员接手。",
          ]
        : [
            "{member} holds partition {partition}: its handler hangs, or is slower than the messages come.",
            "分区 {partition} 由 {member} 持有：处理函数卡住，或者处理得比消息来得慢。",
          ],
    command: "rowpost queue groups {topic} {group}",
    growsInMs: true,
  },
  "queue-dead": {
    name: ["Dead letters", "死信"],
    title: (fact) => [
      `{dead}{+} dead ${fact("dead") === "1" ? "letter" : "letters"} of group {group} in topic {topic}`,
      "主题 {topic} 的消费组 {group} 有 {dead}{+} 条死信",
    ],
    why: [
      "The group has given these messages up after their last attempt; they wait for a person.",
      "最后一次尝试也失败之后，这个组放弃了这些消息，等待人工处理。",
    ],
    command: "rowpost queue dead {topic} {group}",
  },
  "queue-paused": {
    name: ["Consumer group paused", "消费组暂停"],
    title: ["group {group} of topic {topic} is paused", "主题 {topic} 的消费组 {group} 处于暂停"],
    why: ["By {author}. Its messages wait until somebody resumes it.", "操作人 {author}。在恢复之前其消息一直等待。"],
    command: "rowpost queue resume {topic} {group}",
  },
  "queue-tables": {
    name: ["Month tables of the queue", "队列月表"],
    title: (fact) =>
      fact("kind") === "missing"
        ? ["topic {topic} has no tables for {month}", "主题 {topic} 没有 {month} 的月表"]
        : [
            "topic {topic} still has {month}, which is past its retention",
            "主题 {topic} 的 {month} 已超过保留期，仍未删除",
          ],
    why: (fact) =>
      fact("kind") === "missing"
        ? [
            "Running consumers make them ahead: none runs, or none may CREATE. Appends that may not either will fail.",
            "月表由运行中的消费者提前建好：没有消费者在运行，或者没有建表权限。没有建表权限的写入会失败。",
          ]
        : [
            "Running consumers drop it: none runs, none may DROP, or a group still needs it.",
            "月表由运行中的消费者删除：没有消费者在运行、没有删表权限，或者还有消费组需要它。",
          ],
    command: (fact) =>
      fact("kind") === "missing" ? "rowpost queue groups {topic}" : "rowpost queue drop-month {topic} --past-retention",
  },
  doctor: {
    name: ["The doctor's findings", "体检发现的问题"],
    title: (fact) => {
      const more = Number(fact("count")) - 1;
      const rest = more > 0 ? ` (+${more})` : "";
      return [`{subject}: {what}${rest}`, `{subject}: {whatZh}${rest}`];
    },
    why: ["{why}", "{whyZh}"],
    command: "rowpost doctor",
  },
};

const TEST: Texts = {
  title: ["this is a test", "这是一条测试通知"],
  why: ["Somebody tries whether notices arrive here.", "有人在检查通知能否送达此处。"],
  command: ["nothing has to be done", "无需处理"],
};

/** For rules of a later version. */
const UNKNOWN: Texts = {
  title: (fact) => `{rule}${fact("subject") === "" ? "" : " {subject}"}`,
  why: ["An alert that this version has no words for.", "当前版本没有这种告警的文字。"],
  command: ["rowpost alert list, with the version that evaluates", "用判定告警的那个版本运行 rowpost alert list"],
};

export interface RuleText {
  readonly title: string;
  readonly why: string;
  readonly command: string;
  readonly peak: string;
}

type Told = Condition & { readonly peak: number };

export function nameOf(rule: RuleName, language: Language): string {
  return inLanguage(RULES[rule].name, language);
}

export function titleOf(told: Told, language: Language): string {
  return lineOf(told, language).title;
}

export function lineOf(told: Told, language: Language): RuleText {
  const { peak, rule, subject, value } = told;
  const texts: Texts = rule === "test" ? TEST : (RULES[rule] ?? UNKNOWN);
  const facts = factsOf({ ...told.facts, rule, subject, valueMs: value });
  const fact: Fact = (name) => String(facts[name] ?? "?");
  const shown: Fact = (name) => (name.endsWith("Ms") ? durationText(Number(fact(name)), language) : fact(name));
  const fill = (words: Texts["title"], show: Fact): string =>
    inLanguage(typeof words === "function" ? words(fact) : words, language).replace(
      /\{([\w+]+)\}/g,
      (_, name: string) => show(name),
    );
  const command = fill(texts.command, (name) => quoted(fact(name)));
  return {
    title: fill(texts.title, shown),
    why: fill(texts.why, shown),
    command: command.replace(COMMAND, (each) => `${each.trimEnd()} --database URL`),
    // The title at the peak would need the facts of that time.
    peak: texts.growsInMs === true ? durationText(peak, language) : String(peak),
  };
}

/** `{+}`: more than were looked at. An earlier version stored a finding's texts in English only. */
function factsOf(facts: Condition["facts"]): Condition["facts"] {
  const { more, what = "?", why = "?" } = facts;
  return { whatZh: what, whyZh: why, ...facts, "+": more === 1 ? "+" : "" };
}

function inLanguage(words: Words, language: Language): string {
  if (typeof words === "string") return words;
  return words[language === "en" ? 0 : 1];
}

const COMMAND = /\browpost [a-z](?:'[^']*'|"[^"]*"|[^,，'"])*/;
