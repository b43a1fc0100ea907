import { Command } from "commander";
import type { UnaccountedMessages, VerifyAnswer, VerifyOptions } from "rowpost/queue";
import type { CommandContext, ExitCode } from "../context.ts";
import { countText, createProgress, printJson, printLine } from "../output.ts";
import { addQueueOptions, type QueueFlags, withQueue } from "./connection.ts";

interface VerifyFlags extends QueueFlags {
  readonly group?: string;
}

const STEP_MS = 2_000;

export function verifyCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addQueueOptions(new Command("verify"))
    .description("look for messages below a group's progress without a record, a redelivery, a skip or a rewind")
    .argument("<topic>", "the topic")
    .option("--group <group>", "only this consumer group")
    .addHelpText(
      "after",
      `
It only reads, and locks nothing; consumers may run. Exit code 1: a message is missing.

Examples:
  rowpost queue verify orders --database sqlite:./app.db
  rowpost queue verify orders --group billing --json --database mysql://app@127.0.0.1/shop`,
    )
    .action(async (topic: string, { group, ...flags }: VerifyFlags) => {
      const progress = createProgress(context);
      const problems: UnaccountedMessages[] = [];
      let messages = 0;
      await withQueue(context, flags, async (queue) => {
        try {
          for (let after: VerifyOptions["after"]; ; ) {
            const answer: VerifyAnswer = await queue.verify({ topic, group, after, timeLimitMs: STEP_MS });
            problems.push(...answer.problems);
            messages += answer.messages;
            after = answer.next;
            if (answer.complete) break;
            progress.show(`looked at ${countText(messages, "message")} …`);
          }
        } finally {
          progress.end();
        }
      });
      if (flags.json === true) printJson(context, { topic, messages, problems });
      else for (const line of foundText(problems, messages)) printLine(context, line);
      finish(problems.length === 0 ? 0 : 1);
    });
}

function foundText(problems: readonly UnaccountedMessages[], looked: number): string[] {
  const missing = problems.reduce((sum, each) => sum + each.messages, 0);
  const lines = problems.map(({ group, partition, fromId, toId, messages }) => {
    const where = fromId === toId ? fromId : `${fromId} to ${toId}`;
    return `group ${group}, partition ${partition}: ${countText(messages, "message")} without a record: ${where}`;
  });
  return [...lines, `looked at ${countText(looked, "message")} of all groups; ${missing} without a record`];
}
