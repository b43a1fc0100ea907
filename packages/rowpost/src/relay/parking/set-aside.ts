/**
 * Rows that a scan found and nobody may send: a broken one becomes `failed` with a reason, one
 * under a suspension rule becomes `suspended`. Fenced, and beside the rounds, one statement at a
 * time: a row that a user holds locked makes its statement wait for seconds, and must not make the
 * messages of everybody else wait with it. What comes in meanwhile is left alone; the next scan
 * brings it again.
 */
import { ruleReason } from "../../message/suspension-reason.ts";
import { describeError } from "../../runtime/errors.ts";
import type { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { RelaySettings } from "../options.ts";
import type { RelayReports } from "../reports.ts";
import { scannedToken } from "../row-token.ts";
import type { RelayStore, ScannedMessage, SuspensionRule } from "../store.ts";

/** A row that can never be sent as it is, and why. */
export interface BrokenRow {
  readonly row: ScannedMessage;
  readonly reason: string;
}

export interface SetAsideRows {
  readonly broken: readonly BrokenRow[];
  readonly suspended: ReadonlyMap<SuspensionRule, readonly ScannedMessage[]>;
}

export interface SetAside {
  take(rows: SetAsideRows): void;
  /** Resolves when nothing is under way. Never rejects. */
  idle(): Promise<void>;
}

export interface SetAsideOptions {
  readonly store: Pick<RelayStore, "housekeeping">;
  readonly keeper: Pick<LeaseKeeper, "fence">;
  readonly reports: RelayReports;
  readonly settings: Pick<RelaySettings, "logger">;
}

/** Makes the part of a relay that takes out of its scans what nobody may send. */
export function createSetAside({ store, keeper, reports, settings }: SetAsideOptions): SetAside {
  const { housekeeping } = store;
  let running: Promise<void> | undefined;

  async function fail(broken: readonly BrokenRow[]): Promise<void> {
    if (broken.length === 0) return;
    const failed = await housekeeping.failPending({
      fence: keeper.fence(),
      rows: broken.map(({ row, reason }) => ({ ...scannedToken(row), failReason: reason })),
      nextRetryInMs: null,
    });
    // None: the leases were lost, and their next owner tells. Fewer than asked for: somebody
    // changed one meanwhile, and which is not known.
    if (failed > 0) for (const { row, reason } of broken) reports.failed(row, reason, null);
  }

  async function suspend(rule: SuspensionRule, rows: readonly ScannedMessage[]): Promise<void> {
    const suspended = await housekeeping.suspendPending({
      rule,
      fence: keeper.fence(),
      rows: rows.map(scannedToken),
      failReason: `${ruleReason(rule)}${rule.reason} (${rule.author})`,
      endsInMs: rule.endsInMs,
    });
    reports.suspended(rows.slice(0, suspended));
  }

  async function write({ broken, suspended }: SetAsideRows): Promise<void> {
    await fail(broken);
    for (const [rule, rows] of suspended) await suspend(rule, rows);
  }

  return {
    take(rows) {
      if (running !== undefined || rows.broken.length + rows.suspended.size === 0) return;
      running = write(rows)
        .catch((error: unknown) => {
          settings.logger.warn("rows could not be set aside; they are looked at again", {
            error: describeError(error),
          });
        })
        .finally(() => {
          running = undefined;
        });
    },
    async idle() {
      while (running !== undefined) await running;
    },
  };
}
