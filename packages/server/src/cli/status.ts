/** `rowpost status`: messages by state, relays and suspensions. */
import { Command } from "commander";
import { MESSAGE_STATES, type OutboxStatus, type StateTotal } from "rowpost/admin";
import { addCheckOptions, type CheckFlags, problemsOf, problemsText } from "./check.ts";
import { addConnectionOptions, type ConnectionFlags, withAdmin } from "./connection.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import {
  atLeastText,
  countText,
  durationText,
  printJson,
  printLine,
  stateText,
  tableText,
  withoutControls,
} from "./output.ts";

interface StatusFlags extends ConnectionFlags {
  readonly exact?: true;
}

type Flags = StatusFlags & CheckFlags;

export function statusCommand(context: CommandContext, finish: (code: ExitCode) => void): Command {
  return addCheckOptions(addConnectionOptions(new Command("status")))
    .description(
      "show how many messages are in which state, which relays run, which brokers are away, and what is suspended",
    )
    .option("--exact", "count all messages, the sent ones too: reads the whole table")
    .addHelpText(
      "after",
      `
Unfinished messages are counted up to 10,000 of each state. The topics of 300 of them are looked
at, of failed ones all that are counted; 300+ means at least so many, and topics may be missing.

Examples:
  rowpost status --database sqlite:./app.db
  rowpost status --database mysql://app@127.0.0.1/shop --json
  rowpost status --database mysql://app@127.0.0.1/shop --check --max-oldest 2m --max-failed 10   # for monitoring`,
    )
    .action(async (flags: Flags) => {
      const status = await withAdmin(context, flags, (admin) => admin.status({ exact: flags.exact === true }));
      const problems = flags.check === true ? problemsOf(status, flags) : undefined;
      if (flags.json === true) printJson(context, problems === undefined ? status : { ...status, problems });
      else if (problems !== undefined) printLine(context, problemsText(problems));
      else {
        const parts = [
          countsText(context, status),
          oldestText(status),
          relaysText(context, status),
          awayText(context, status),
          suspensionsText(context, status),
        ];
        printLine(context, parts.filter((part) => part !== "").join("\n\n"));
      }
      finish(problems === undefined || problems.length === 0 ? 0 : 1);
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

function oldestText({ oldestDue }: OutboxStatus): string {
  if (oldestDue === undefined) return "nothing is due";
  const { id, topic, waitingMs } = oldestDue;
  return `the oldest due message, ${id} of ${withoutControls(topic)}, has waited for ${durationText(waitingMs)}`;
}

function relaysText(context: CommandContext, { instances, leases }: OutboxStatus): string {
  const alive = instances.filter((instance) => instance.alive);
  if (alive.length === 0) {
    const [last] = [...instances].sort((left, right) => left.silentMs - right.silentMs);
    const sign = last && `; the last sign of life was that of ${last.label}, ${durationText(last.silentMs)} ago`;
    return `no relay is running${sign ?? ""}`;
  }
  const shards = new Set(leases.map(({ shard }) => shard)).size;
  const rows = instances.map(({ label, owner, report, silentMs }) => {
    const held = leases.filter((lease) => lease.owner === owner).length;
    const seen = `${durationText(silentMs)} ago`;
    return [label, `${held} of ${shards}`, seen, report === undefined ? "" : String(report.inFlight), owner];
  });
  const titles = ["RELAY", "SHARDS", "SEEN", "IN FLIGHT", "OWNER"];
  return tableText(
    context,
    titles.map((title) => ({ title })),
    rows,
  );
}

function awayText(context: CommandContext, { instances }: OutboxStatus): string {
  const rows = instances.flatMap(({ alive, label, report }) => {
    if (!alive || report === undefined) return [];
    const brokers = report.brokers.flatMap(({ awayForMs, name, reason }) =>
      awayForMs === undefined ? [] : [["broker away", name, `for ${durationText(awayForMs)}`, label, reason ?? ""]],
    );
    const topics = report.restingTopics.map(({ reason, restsForMs, topic }) => [
      ...["topic rests", topic, restsForMs === 0 ? "is probed" : `${durationText(restsForMs)} more`, label, reason],
    ]);
    const more = report.moreResting === 0 ? [] : [["topic rests", `and ${report.moreResting} more`, "", label, ""]];
    return [...brokers, ...topics, ...more];
  });
  if (rows.length === 0) return "";
  return tableText(
    context,
    ["WHAT", "NAME", "HOW LONG", "RELAY", "REASON"].map((title) => ({ title })),
    rows,
  );
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
