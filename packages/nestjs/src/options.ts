import type { FactoryProvider, ModuleMetadata } from "@nestjs/common";
import type { Database, Logger, OutboxOptions, RelayOptions } from "rowpost";
import type { Handler } from "rowpost/consume";
import type { Inbox, InboxOptions } from "rowpost/inbox";

/**
 * Options of the relay in this process: those of `createRelay` that the module does not set. It
 * logs to Nest's logger unless `logger` is given.
 */
export type ModuleRelayOptions = Omit<RelayOptions, "database" | "layout">;

/** Provided by the module, for the options of a `consume…` of rowpost/consume. */
export interface ConsumerParts {
  /** With the consumer's name, on the module's database. */
  readonly inbox: Inbox | "none";
  /** Calls the `@OnMessage` method of the message's type. */
  readonly handler: Handler<unknown, unknown>;
  /** Nest's logger. */
  readonly logger: Logger;
}

/** The result of a `consume…`, or anything else with `close`. */
export interface RunningConsumer {
  /** Awaited before the database is closed. */
  close(): Promise<unknown>;
}

/** Starts a consumer: `(parts) => consumeNats({ ...parts, connect, stream, durable })`. */
export type StartConsumer = (parts: ConsumerParts) => RunningConsumer | Promise<RunningConsumer>;

/** Options of {@link RowpostModule.forRoot}: those of `createOutbox`, and the relay. */
export interface RowpostOptions extends OutboxOptions {
  /**
   * Closed at the end of the shutdown, with the connections it opened; a pool that was passed in
   * stays open.
   */
  readonly database: Database;
  /**
   * The relay of this process. Absent: none, if `rowpost relay` or another instance publishes the
   * messages.
   */
  readonly relay?: ModuleRelayOptions | undefined;
  /**
   * The consumers whose messages go to `@OnMessage` methods, by name: the name in the inbox, 1 to
   * 64 characters. Each is started with the application, and closed before the database.
   * `false`: this process does not run it, and its methods stay uncalled.
   */
  readonly consumers?: Readonly<Record<string, StartConsumer | false>> | undefined;
  /**
   * Options of the consumers' inboxes; their table must exist. `"none"`: no inbox, and a repeated
   * message is handled twice. Default: those of `createInbox`.
   */
  readonly inbox?: Omit<InboxOptions, "database" | "consumer"> | "none" | undefined;
}

/** Options of {@link RowpostModule.forRootAsync}. */
export interface RowpostAsyncOptions
  extends Pick<ModuleMetadata, "imports">,
    Pick<FactoryProvider<RowpostOptions | Promise<RowpostOptions>>, "inject" | "useFactory"> {
  /** Distinguishes several outboxes of one application; see `InjectOutbox`. Default: none. */
  readonly name?: string | undefined;
}
