/**
 * Takes rows out of the scans that must not be sent: broken ones become `failed` with a reason,
 * those under a suspension rule `suspended`. Fenced, one statement at a time beside the rounds. New
 * and locked rows are left to the next scan.
 */
import { ruleReason } from "../../message/suspension-reason.ts";
import { describeError } from "../../runtime/errors.ts";
import type { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { RelaySettings } from "../options.ts";
import type { RelayReports } from "../reports.ts";
import { scannedToken } from "../row-token.ts";
import type { RelayStore, ScannedMessage, SuspensionRule } from "../store.ts";

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

export function createSetAside({ store, keeper, reports, settings }: SetAsideOptions): SetAside {
  const { housekeeping } = store;
  let running: Promise<void> | undefined;
  /** Failed rows with their versions; some may not be written. */
  let told: ReadonlyMap<string, string> = new Map();

  async function fail(broken: readonly BrokenRow[]): Promise<void> {
    if (broken.length === 0) return;
    const failed = await housekeeping.failPending({
      fence: keeper.fence(),
      rows: broken.map(({ row, reason }) => ({ ...scannedToken(row), failReason: reason })),
      nextRetryInMs: null,
    });
    // None: the leases were lost, and the next owner reports. Fewer than requested: an unknown one
    // is locked or changed, so each is reported once.
    if (failed === 0) return;
    for (const { row, reason } of broken) {
      if (told.get(row.id) !== row.lockVersion) reports.failed(row, reason, null);
    }
    const isWhole = failed === broken.length;
    told = new Map(isWhole ? [] : broken.map(({ row }) => [row.id, row.lockVersion]));
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

  /** A failure of one list does not stop the other. */
  async function write({ broken, suspended }: SetAsideRows): Promise<void> {
    const lists = [
      () => fail(broken),
      ...[...suspended].map(
        ([rule, rows]) =>
          () =>
            suspend(rule, rows),
      ),
    ];
    for (const list of lists) {
      await list().catch((error: unknown) => {
        settings.logger.warn("rows could not be set aside; they are looked at again", {
          error: describeError(error),
        });
      });
    }
  }

  return {
    take(rows) {
      if (running !== undefined || rows.broken.length + rows.suspended.size === 0) return;
      running = write(rows).finally(() => {
        running = undefined;
      });
    },
    async idle() {
      while (running !== undefined) await running;
    },
  };
}
