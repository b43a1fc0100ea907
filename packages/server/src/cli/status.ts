/** `rowpost status`: how many messages are in which state, who relays, what is suspended. */
import { Command } from "commander";
import { MESSAGE_STATES, type OutboxStatus } from "rowpost";
import { addConnectionOptions, type ConnectionFlags, withAdmin } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { countText, durationText, printJson, printLine, stateText, tableText } from "./output.ts";

/** The command; `finish` takes its exit code. */
export function statusCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addConnectionOptions(new Command("status"))
    .description("show how many messages are in which state, which relays run, and what is suspended")
    .addHelpText(
      "after",
      `
Examples:
  rowpost status --database sqlite:./app.db
  rowpost status --database mysql://app@127.0.0.1/shop --json`,
    )
    .action(async (flags: ConnectionFlags) => {
      const status = await withAdmin(context, flags, (admin) => admin.status());
      if (flags.json === true) printJson(context, status);
      else {
        const parts = [countsText(context, status), relaysText(context, status), suspensionsText(context, status)];
        printLine(context, parts.filter((part) => part !== "").join("\n\n"));
      }
      finish(0);
    });
}

function countsText(context: CommandContext, { counts }: OutboxStatus): string {
  if (counts.length === 0) return "no messages";
  const order = (state: OutboxStatus["counts"][number]["state"]): number =>
    state === "unknown" ? MESSAGE_STATES.length : MESSAGE_STATES.indexOf(state);
  const sorted = [...counts].sort(
    (left, right) => left.topic.localeCompare(right.topic) || order(left.state) - order(right.state),
  );
  return tableText(
    context,
    [
      { title: "TOPIC" },
      { title: "STATE" },
      { title: "MESSAGES", align: "right" },
      { title: "OLDEST", align: "right" },
    ],
    sorted.map(({ topic, state, count, oldestAgeMs }) => [
      topic,
      stateText(context, state),
      String(count),
      durationText(oldestAgeMs),
    ]),
  );
}

function relaysText(context: CommandContext, { instances, leases }: OutboxStatus): string {
  const alive = instances.filter((instance) => instance.alive);
  if (alive.length === 0) return "no relay is running";
  const rows = alive.map(({ owner, label }) => {
    const held = leases.filter((lease) => lease.owner === owner).length;
    return [label, `${held} of ${leases.length}`, owner];
  });
  return tableText(context, [{ title: "RELAY" }, { title: "SHARDS" }, { title: "OWNER" }], rows);
}

function suspensionsText(context: CommandContext, { suspensions }: OutboxStatus): string {
  if (suspensions.length === 0) return "";
  const rows = suspensions.map(({ scope, value, reason, author, endsInMs }) => [
    scope,
    value,
    endsInMs === null ? "until resumed" : `for ${durationText(endsInMs)} more`,
    author,
    reason,
  ]);
  const columns = ["SUSPENDED", "VALUE", "HOW LONG", "AUTHOR", "REASON"].map((title) => ({ title }));
  return `${countText(suspensions.length, "suspension rule")}\n${tableText(context, columns, rows)}`;
}
