import { type Command, InvalidArgumentError } from "commander";
import type { TopicOptions } from "rowpost/queue";
import { wholeNumber } from "../arguments.ts";
import type { QueueFlags } from "./connection.ts";

export interface TopicFlags extends QueueFlags {
  readonly partitions?: number;
  readonly retention?: number | "ever";
}

export function addTopicOptions(command: Command): Command {
  return command
    .option("--partitions <n>", "1 to 64; they may grow later, and never shrink", wholeNumber(1, 64))
    .option("--retention <months>", "months that messages are kept, or ever", retention);
}

export function topicOptions(topic: string, { partitions, retention: months }: TopicFlags): TopicOptions {
  return {
    topic,
    ...(partitions === undefined ? {} : { partitions }),
    ...(months === undefined ? {} : { retentionMonths: months === "ever" ? null : months }),
  };
}

function retention(text: string): number | "ever" {
  if (text === "ever") return "ever";
  if (/^\d{1,4}$/.test(text) && Number(text) > 0) return Number(text);
  throw new InvalidArgumentError("It must be a number of months, or ever.");
}
