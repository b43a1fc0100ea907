import {
  ConfigurationError,
  type Confirmation,
  type ConfirmationResult,
  InvalidMessageError,
  type Logger,
  type MetricsRegistry,
  type Outbox,
} from "rowpost";
import { tellUnknown } from "../confirm-endpoint.ts";

export interface ReportParts {
  readonly outbox: Pick<Outbox, "confirm">;
  readonly metrics: Pick<MetricsRegistry, "increment">;
  readonly logger: Logger;
}

/** A body: one report or a list. Resolves when they are written or permanently rejected. */
export type TakeReports = (text: string) => Promise<void>;

const AT_ONCE = 100;
const SHOWN = 300;

interface Waiting {
  readonly reports: readonly Confirmation[];
  readonly resolve: (results: readonly ConfirmationResult[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Rejects while the database is away. Invalid reports are logged and dropped, since they would fail
 * every time; the others of their list are written.
 */
export function createReports({ outbox, metrics, logger }: ReportParts): TakeReports {
  const confirm = together((reports) => outbox.confirm(reports));

  function drop(error: unknown, body: string): void {
    metrics.increment("rowpost_confirmations_total", { status: "invalid" });
    logger.error("a message of the confirmation topic is no confirmation, and is dropped", {
      error,
      body: body.slice(0, SHOWN),
    });
  }

  async function take(reports: readonly Confirmation[]): Promise<void> {
    let results: readonly ConfirmationResult[];
    try {
      results = await confirm(reports);
    } catch (error) {
      if (!isWrong(error)) throw error;
      // Nothing of the list was written.
      if (reports.length > 1) for (const report of reports) await take([report]);
      else drop(error, JSON.stringify(reports[0]));
      return;
    }
    for (const { status } of results) metrics.increment("rowpost_confirmations_total", { status });
    tellUnknown(logger, reports, results);
  }

  return async (text) => {
    let reports: readonly Confirmation[];
    try {
      reports = [JSON.parse(text) as Confirmation | readonly Confirmation[]].flat();
    } catch (error) {
      return drop(error, text);
    }
    await take(reports);
  };
}

function isWrong(error: unknown): boolean {
  return error instanceof InvalidMessageError || error instanceof ConfigurationError;
}

/** Collects calls during a write and writes them together afterwards. */
function together(
  confirm: (reports: readonly Confirmation[]) => Promise<ConfirmationResult[]>,
): (reports: readonly Confirmation[]) => Promise<readonly ConfirmationResult[]> {
  const waiting: Waiting[] = [];
  let isWriting = false;

  async function write(some: readonly Waiting[]): Promise<void> {
    try {
      const results = await confirm(some.flatMap(({ reports }) => reports));
      let from = 0;
      for (const { reports, resolve } of some) {
        resolve(results.slice(from, from + reports.length));
        from += reports.length;
      }
    } catch (error) {
      // An invalid report must not fail the others.
      if (some.length > 1 && isWrong(error)) for (const one of some) await write([one]);
      else for (const { reject } of some) reject(error);
    }
  }

  async function writeAll(): Promise<void> {
    isWriting = true;
    while (waiting.length > 0) await write(waiting.splice(0, AT_ONCE));
    isWriting = false;
  }

  return (reports) =>
    new Promise((resolve, reject) => {
      waiting.push({ reports, resolve, reject });
      if (!isWriting) void writeAll();
    });
}
