/** Options of the module. */
import type { FactoryProvider, ModuleMetadata } from "@nestjs/common";
import type { Database, OutboxOptions, RelayOptions } from "rowpost";

/**
 * Options of the relay in this process: those of `createRelay`, without what the module knows. Its
 * log goes to Nest's logger unless `logger` is given.
 */
export type ModuleRelayOptions = Omit<RelayOptions, "database" | "layout">;

/** Options of {@link RowpostModule.forRoot}: those of `createOutbox`, and the relay. */
export interface RowpostOptions extends OutboxOptions {
  /**
   * Closed at the end of the shutdown: connections that it opened end, a pool that you passed to it
   * stays yours.
   */
  readonly database: Database;
  /**
   * The relay of this process. Absent: none, for an application that only writes messages while
   * `rowpost relay` or another instance publishes them.
   */
  readonly relay?: ModuleRelayOptions | undefined;
}

/** Options of {@link RowpostModule.forRootAsync}. */
export interface RowpostAsyncOptions
  extends Pick<ModuleMetadata, "imports">,
    Pick<FactoryProvider<RowpostOptions | Promise<RowpostOptions>>, "inject" | "useFactory"> {
  /** Tells several outboxes of one application apart; see `InjectOutbox`. Default: none. */
  readonly name?: string | undefined;
}
