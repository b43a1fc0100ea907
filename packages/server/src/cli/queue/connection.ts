import type { Command } from "commander";
import { createQueue, type Queue } from "rowpost/queue";
import { isMissingTable } from "../../database-url.ts";
import { CommandFailure } from "../../failure.ts";
import { databaseOption, withDatabase } from "../connection.ts";
import type { CommandContext } from "../context.ts";

/** Options of {@link addQueueOptions}, as commander hands them over. */
export interface QueueFlags {
  readonly database?: string;
  readonly json?: true;
  readonly verbose?: true;
}

export function addQueueOptions(command: Command): Command {
  return command
    .addOption(databaseOption())
    .option("--json", "print JSON")
    .option("--verbose", "print stacks of errors");
}

export async function withQueue<Result>(
  context: CommandContext,
  flags: QueueFlags,
  work: (queue: Queue) => Promise<Result>,
  { mayCreateFile = false, producerGroup }: { readonly mayCreateFile?: boolean; readonly producerGroup?: string } = {},
): Promise<Result> {
  return await withDatabase(context, flags, { mayCreateFile }, async ({ database, address }) => {
    const queue = createQueue({ database, producerGroup });
    try {
      return await work(queue);
    } catch (error) {
      if (!isMissingTable(error)) throw error;
      throw new CommandFailure(
        `the message queue has no tables in ${address.label}; \`rowpost queue create TOPIC\` makes them with the first topic`,
        { cause: error },
      );
    } finally {
      await queue.close();
    }
  });
}
