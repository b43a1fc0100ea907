/** The words of the rules of the message queue. */
import { durationText } from "./durations.ts";
import { quoted, type Writer } from "./rule-writer.ts";

type QueueRule = "queue-lag" | "queue-dead" | "queue-paused" | "queue-tables";

/** As a command takes them. */
function place(fact: (name: string) => string): string {
  return `${quoted(fact("topic"))} ${quoted(fact("group"))}`;
}

function dead(fact: (name: string) => string): string {
  return `${fact("dead")}${fact("more") === "1" ? "+" : ""}`;
}

/** Topics need no quotes. */
function tablesCommand(fact: (name: string) => string): string {
  return fact("kind") === "missing"
    ? `rowpost queue groups ${fact("topic")}`
    : `rowpost queue drop-month ${fact("topic")} --past-retention`;
}

export const QUEUE_EN: Readonly<Record<QueueRule, Writer>> = {
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
};

export const QUEUE_ZH: typeof QUEUE_EN = {
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
};
