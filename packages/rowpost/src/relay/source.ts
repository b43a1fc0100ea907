/** The table of a relay, its abilities, and its doorbell. */
import type { Database, Doorbell, TableLayout } from "../databases/database.ts";
import type { RelaySettings } from "./options.ts";
import type { RelayStore, RelayStoreOptions, TableAbilities } from "./store.ts";

export interface RelaySource {
  /** Opens sessions and logs the abilities that the table lacks. */
  open(): Promise<void>;
  close(): Promise<void>;
  readonly abilities: TableAbilities;
  /** Undefined: the database sends no notifications. */
  listen(): Promise<{ close(): Promise<void> } | undefined>;
  /** Rings for messages enqueued by this process. */
  readonly doorbell: Doorbell;
}

export interface RelaySourceOptions {
  readonly database: Database;
  readonly layout: TableLayout;
  readonly settings: RelaySettings;
  readonly store: Pick<RelayStore, "open" | "close">;
  readonly onRowRefused: RelayStoreOptions["onRowRefused"];
  readonly topics: readonly string[] | undefined;
  /** Cuts every connection to the database. */
  readonly cutoff: AbortSignal;
}

/** Well below a lease. */
const LONGEST_STATEMENT_MS = 15_000;

const WITHOUT_INDEX =
  "this table has no index that leads to the messages of a topic: while one topic rests, those of the others are " +
  "looked for among its rows; create it to keep topics apart";

export function createSource(options: RelaySourceOptions): RelaySource {
  const { database, layout, settings, store, topics, cutoff, onRowRefused } = options;
  let abilities: TableAbilities = { scansByTopic: false, setsBehind: false, missingIndexes: [] };
  return {
    doorbell: database.doorbell,
    listen: () => database.listen(layout, cutoff),
    close: () => store.close(),
    get abilities() {
      return abilities;
    },
    async open() {
      abilities = await store.open({ ...storeOptions(settings), signal: cutoff, onRowRefused });
      if (topics !== undefined)
        settings.logger.info("messages of other topics than these are left to other relays of the table", { topics });
      for (const statement of abilities.missingIndexes) settings.logger.warn(WITHOUT_INDEX, { statement });
      const zone = abilities.shiftingZone;
      if (zone !== undefined)
        settings.logger.warn("the instants of this table are in a zone with daylight saving", { zone });
      for (const { mend, severity, what, why } of abilities.findings ?? [])
        if (severity !== "note") settings.logger.warn(what, { why, mend });
    },
  };
}

function storeOptions(settings: RelaySettings): RelayStoreOptions {
  return {
    sendingMark: settings.sendingMark,
    statementTimeoutMs: Math.min(LONGEST_STATEMENT_MS, Math.floor(settings.leaseMs / 2)),
    // Below a quarter of the lease, so that a user's lock on a message row cannot starve a renewal
    // (rule: takeover-fence).
    lockWaitTimeoutMs: Math.max(1_000, Math.min(3_000, Math.floor(settings.leaseMs / 5))),
  };
}
