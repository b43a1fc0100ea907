/** Options of the module. */
import type { FactoryProvider, ModuleMetadata } from "@nestjs/common";
import type { Database, Logger, OutboxOptions, RelayOptions } from "rowpost";
import type { Handler } from "rowpost/consume";
import type { Inbox, InboxOptions } from "rowpost/inbox";

/**
 * Options of the relay in this process: those of `createRelay`, without what the module knows. Its
 * log goes to Nest's logger unless `logger` is given.
 */
export type ModuleRelayOptions = Omit<RelayOptions, "database" | "layout">;

/** What the module brings to a consumer: for the options of a `consume…` of rowpost/consume. */
export interface ConsumerParts {
  /** With the consumer's name, on the module's database. */
  readonly inbox: Inbox | "none";
  /** Calls the `@OnMessage` method of the message's type. */
  readonly handler: Handler<unknown, unknown>;
  /** Nest's. */
  readonly logger: Logger;
}

/** What comes of a `consume…`, or anything else that can be closed. */
export interface RunningConsumer {
  /** Awaited before the database is closed. */
  close(): Promise<unknown>;
}

/** Starts a consumer: `(parts) => consumeNats({ ...parts, connect, stream, durable })`. */
export type StartConsumer = (parts: ConsumerParts) => RunningConsumer | Promise<RunningConsumer>;

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
  /**
   * The consumers whose messages go to `@OnMessage` methods, by name: the name in the inbox, 1 to
   * 64 characters. Each is started with the application, and closed before the database.
   * `false`: this process does not run it, and its methods stay uncalled.
   */
  readonly consumers?: Readonly<Record<string, StartConsumer | false>> | undefined;
  /**
   * Options of the consumers' inboxes; their table has to be there. `"none"`: none has one, and a
   * message that comes twice is handled twice. Default: those of `createInbox`.
   */
  readonly inbox?: Omit<InboxOptions, "database" | "consumer"> | "none" | undefined;
}

/** Options of {@link RowpostModule.forRootAsync}. */
export interface RowpostAsyncOptions
  extends Pick<ModuleMetadata, "imports">,
    Pick<FactoryProvider<RowpostOptions | Promise<RowpostOptions>>, "inject" | "useFactory"> {
  /** Tells several outboxes of one application apart; see `InjectOutbox`. Default: none. */
  readonly name?: string | undefined;
}
