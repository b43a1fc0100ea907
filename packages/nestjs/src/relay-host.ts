/**
 * The relay and the consumers in the life of the application. They start when every module is
 * there, and stop in `beforeApplicationShutdown`, all at once:
 *
 * - before `onApplicationShutdown`, where TypeORM and MikroORM close their pools and other modules
 *   their broker clients;
 * - before Nest waits for open HTTP connections, which may take longer than the process is given: a
 *   relay that was not stopped leaves leases behind, and what was in flight is sent again; a
 *   consumer leaves messages that others get only after a timeout of their broker.
 *
 * Requests and handlers that still run then commit their messages as before; another instance
 * publishes them, or this one after its restart. The database object is closed last, because they
 * still need it.
 */
import type { BeforeApplicationShutdown, OnApplicationBootstrap, OnApplicationShutdown } from "@nestjs/common";
import type { Logger, Relay } from "rowpost";
import type { ConsumerHost } from "./consumer-host.ts";
import type { RowpostOptions } from "./options.ts";

/** Phase of the relay of this process. */
export type RelayPhase = "none" | "starting" | "running" | "stopped";

export class RelayHost implements OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown {
  readonly #options: RowpostOptions;
  readonly #relay: Relay | undefined;
  readonly #consumers: ConsumerHost;
  readonly #logger: Logger;
  #phase: RelayPhase;

  constructor(options: RowpostOptions, relay: Relay | undefined, consumers: ConsumerHost, logger: Logger) {
    this.#options = options;
    this.#relay = relay;
    this.#consumers = consumers;
    this.#logger = logger;
    this.#phase = relay === undefined ? "none" : "starting";
  }

  get phase(): RelayPhase {
    return this.#phase;
  }

  /** Rejects, and with it the application's start, if one of them cannot run as configured. */
  async onApplicationBootstrap(): Promise<void> {
    try {
      this.#consumers.bind();
      await this.#startRelay();
      await this.#consumers.start();
    } catch (error) {
      await this.beforeApplicationShutdown();
      await this.#closeDatabase();
      throw error;
    }
    const runs = this.#relay !== undefined || this.#consumers.switches.some(([, start]) => start !== false);
    if (runs && process.listenerCount("SIGTERM") === 0) {
      this.#logger.warn(
        "SIGTERM will end this process without stopping the relay and the consumers: call app.enableShutdownHooks() before app.listen()",
      );
    }
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([this.#consumers.close(), this.#stopRelay()]);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#closeDatabase();
  }

  async #startRelay(): Promise<void> {
    if (this.#relay === undefined) return;
    try {
      await this.#relay.start();
    } catch (error) {
      this.#phase = "stopped";
      throw error;
    }
    this.#phase = "running";
    this.#logger.info("relay runs", { database: this.#options.database.label, owner: this.#relay.owner });
  }

  async #stopRelay(): Promise<void> {
    // A relay that failed to start has closed its broker.
    if (this.#relay === undefined || this.#phase === "stopped") return;
    this.#phase = "stopped";
    try {
      const { drained, unsettled } = await this.#relay.stop();
      if (drained) this.#logger.info("relay stopped", { ...this.#relay.counts });
      else
        this.#logger.warn("relay stopped before everything was settled; the next owner sends it again", { unsettled });
    } catch (error) {
      // Not thrown, because the hooks of other modules must still run.
      this.#logger.error("relay did not stop in order", { error });
    }
  }

  async #closeDatabase(): Promise<void> {
    try {
      await this.#options.database.close();
    } catch (error) {
      this.#logger.error("the database did not close in order", { error });
    }
  }
}
