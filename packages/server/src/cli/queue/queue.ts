/** `rowpost queue`: the message queue stored in SQL. One file for each command. */
import { Command } from "commander";
import type { CommandContext, ExitCode } from "../context.ts";
import { alterCommand } from "./alter.ts";
import { discardCommand, editCommand, redeliverCommand } from "./change-dead.ts";
import { createCommand } from "./create.ts";
import { deadCommand } from "./dead.ts";
import { deleteCommand } from "./delete.ts";
import { deleteGroupCommand } from "./delete-group.ts";
import { dropMonthCommand } from "./drop-month.ts";
import { groupsCommand } from "./groups.ts";
import { pauseCommand, resumeCommand, skipCommand } from "./pause.ts";
import { rewindCommand } from "./rewind.ts";
import { searchCommand } from "./search.ts";
import { sendCommand } from "./send.ts";
import { recallCommand, showCommand } from "./show.ts";
import { tailCommand } from "./tail.ts";
import { topicsCommand } from "./topics.ts";
import { verifyCommand } from "./verify.ts";

export function queueCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  const queue = new Command("queue")
    .description("the message queue stored in SQL: topics, messages, consumer groups")
    .helpCommand("help [command]", "show the help of a command")
    .addHelpText(
      "after",
      `
Examples:
  rowpost queue create orders --partitions 4 --database sqlite:./app.db
  rowpost queue send orders '{"total":12}' --key 4711 --database sqlite:./app.db
  rowpost queue tail orders --from start --database sqlite:./app.db`,
    );
  const commands = [
    topicsCommand,
    createCommand,
    alterCommand,
    deleteCommand,
    sendCommand,
    tailCommand,
    searchCommand,
    showCommand,
    recallCommand,
    rewindCommand,
    dropMonthCommand,
    groupsCommand,
    pauseCommand,
    resumeCommand,
    skipCommand,
    deleteGroupCommand,
    deadCommand,
    redeliverCommand,
    discardCommand,
    editCommand,
    verifyCommand,
  ];
  for (const make of commands) queue.addCommand(make(context, finish));
  return queue;
}
