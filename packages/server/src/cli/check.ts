import { type Command, Option } from "commander";
import type { OutboxStatus } from "rowpost/admin";
import { duration, wholeNumber } from "./arguments.ts";
import { atLeastText, countText, durationText, withoutControls } from "./output.ts";

/** Options of {@link addCheckOptions}. */
export interface CheckFlags {
  readonly check?: true;
  readonly maxOldest: number;
  readonly maxFailed: number;
  readonly maxAway: number;
  readonly minRelays: number;
}

export interface Problem {
  readonly check: "oldest" | "failed" | "relays" | "broker";
  readonly text: string;
}

export function addCheckOptions(command: Command): Command {
  return command
    .option("--check", "for monitoring: print only what is wrong, and end with exit code 1 when something is")
    .addOption(
      new Option("--max-oldest <duration>", "with --check: a message may be due for this long")
        .argParser(duration)
        .default(300_000, "5m"),
    )
    .option("--max-failed <n>", "with --check: so many may be failed", wholeNumber(0, 1_000_000_000), 0)
    .addOption(
      new Option("--max-away <duration>", "with --check: a broker may be away for this long")
        .argParser(duration)
        .default(60_000, "1m"),
    )
    .option("--min-relays <n>", "with --check: so many relays have to run", wholeNumber(0, 10_000), 1);
}

export function problemsOf(status: OutboxStatus, flags: CheckFlags): Problem[] {
  const alive = status.instances.filter((instance) => instance.alive);
  const problems: Problem[] = [];
  if (alive.length < flags.minRelays) {
    const text = `${countText(alive.length, "relay")} running, ${flags.minRelays} expected`;
    problems.push({ check: "relays", text });
  }
  for (const { label, report } of alive) {
    for (const { awayForMs, name, reason } of report?.brokers ?? []) {
      if (awayForMs === undefined || awayForMs <= flags.maxAway) continue;
      const text = `broker ${name} away for ${durationText(awayForMs)}, says ${label}: ${reason ?? ""}`;
      problems.push({ check: "broker", text });
    }
  }
  const { oldestDue } = status;
  if (oldestDue !== undefined && oldestDue.waitingMs > flags.maxOldest) {
    const text = `message ${oldestDue.id} of ${oldestDue.topic} is due for ${durationText(oldestDue.waitingMs)}`;
    problems.push({ check: "oldest", text });
  }
  const failed = status.totals.find(({ state }) => state === "failed");
  if (failed !== undefined && failed.count > flags.maxFailed) {
    const text = `${atLeastText(failed)} failed messages, at most ${flags.maxFailed} expected`;
    problems.push({ check: "failed", text });
  }
  return problems;
}

export function problemsText(problems: readonly Problem[]): string {
  return problems.length === 0 ? "ok" : problems.map(({ text }) => withoutControls(text)).join("\n");
}
