/** `rowpost status`: how many messages are in which state, who relays, what is suspended. */
import { Command } from "commander";
import { MESSAGE_STATES, type OutboxStatus, type StateTotal } from "rowpost";
import { addConnectionOptions, type ConnectionFlags, withAdmin } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { countText, durationText, printJson, printLine, stateText, tableText, withoutControls } from "./output.ts";

interface StatusFlags extends ConnectionFlags {
  readonly exact?: true;
}

/** The command; `finish` takes its exit code. */
export function statusCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addConnectionOptions(new Command("status"))
    .description("show how many messages are in which state, which relays run, and what is suspended")
    .option("--exact", "count all messages, the sent ones too: reads the whole table")
    .addHelpText(
      "after",
      `
Unfinished messages are counted up to 10,000 of each state, and the topics of 300 of them are
looked at; 300+ means at least so many.

Examples:
  rowpost status --database sqlite:./app.db
  rowpost status --database mysql://app@127.0.0.1/shop --json`,
    )
    .action(async (flags: StatusFlags) => {
      const status = await withAdmin(context, flags, (admin) => admin.status({ exact: flags.exact === true }));
      if (flags.json === true) printJson(context, status);
      else {
        const parts = [
          countsText(context, status),
          oldestText(status),
          relaysText(context, status),
          suspensionsText(context, status),
        ];
        printLine(context, parts.filter((part) => part !== "").join("\n\n"));
      }
      finish(0);
    });
}

function countsText(context: CommandContext, { counts, exact, totals }: OutboxStatus): string {
  if (counts.length === 0) return exact ? "no messages" : "no unfinished messages";
  const isPart = (state: StateTotal["state"]): boolean => counts.some((one) => one.state === state && one.atLeast);
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
    [
      ...sorted.map((one) => [
        one.topic,
        stateText(context, one.state),
        atLeastText(one),
        durationText(one.oldestAgeMs),
      ]),
      ...totals
        .filter(({ state }) => isPart(state))
        .map((one) => ["(all topics)", stateText(context, one.state), atLeastText(one), ""]),
    ],
  );
}

function atLeastText({ atLeast, count }: Pick<StateTotal, "atLeast" | "count">): string {
  return `${count}${atLeast ? "+" : ""}`;
}

function oldestText({ oldestDue }: OutboxStatus): string {
  if (oldestDue === undefined) return "nothing is due";
  const { id, topic, waitingMs } = oldestDue;
  return `the oldest due message, ${id} of ${withoutControls(topic)}, has waited for ${durationText(waitingMs)}`;
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
