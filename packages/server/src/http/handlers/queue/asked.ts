import { RowpostError } from "rowpost";
import { MonthDroppedError } from "rowpost/queue";
import type { Principal } from "../../../access/principal.ts";
import { isMissingTable } from "../../../database-url.ts";
import type { Source } from "../../../source.ts";
import { Problem, type ProblemCode } from "../../problem.ts";

const REFUSALS: Readonly<Record<string, ProblemCode>> = {
  UNKNOWN_TOPIC: "not-found",
  UNKNOWN_GROUP: "not-found",
  INVALID_NAME: "invalid-request",
  INVALID_ID: "invalid-request",
  INVALID_MESSAGE: "invalid-request",
  CANNOT_SKIP: "state-conflict",
  NO_DEAD_LETTER: "state-conflict",
  REWIND_REFUSED: "state-conflict",
  MONTH_DROPPED: "state-conflict",
};

/** Runs `work`; throws a {@link Problem} for what the queue refuses. */
export async function asked<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw refusalOf(error) ?? error;
  }
}

function refusalOf(error: unknown): Problem | undefined {
  if (error instanceof MonthDroppedError)
    return new Problem("state-conflict", error.message, { more: { droppedMonths: error.months } });
  const code = error instanceof RowpostError ? REFUSALS[error.code] : undefined;
  if (code !== undefined && error instanceof RowpostError) return new Problem(code, error.message);
  if (!isMissingTable(error)) return undefined;
  return new Problem("not-found", "this database has no message queue; `rowpost queue create TOPIC` makes it");
}

export interface QueueChange {
  readonly source: Source;
  readonly principal: Principal;
  readonly action: string;
  readonly reason: string;
  readonly about: Readonly<Record<string, unknown>>;
}

/**
 * The queue changes in its own transactions, so the intent is audited before and the result after.
 * No change lacks an entry, whenever this process ends; an entry without a second one may or may
 * not have been carried out.
 */
export async function audited<T>(
  { about, action, principal, reason, source }: QueueChange,
  work: (by: { readonly author: string; readonly reason: string }) => Promise<T>,
  outcome: (done: T) => Readonly<Record<string, unknown>>,
): Promise<T> {
  const by = { author: principal.name, reason: reason.trim() };
  const entry = { ...by, via: principal.via, action };
  await source.operations.record({ ...entry, result: "begun", details: about });
  try {
    const done = await asked(() => work(by));
    await source.operations.record({ ...entry, result: "done", details: { ...about, ...outcome(done) } });
    return done;
  } catch (error) {
    if (error instanceof Problem)
      await source.operations.record({ ...entry, result: "conflict", details: { ...about, refused: error.message } });
    throw error;
  }
}
