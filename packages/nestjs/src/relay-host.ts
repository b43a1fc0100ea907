/**
 * The relay in the life of the application. It starts when every module is there, and stops in
 * `beforeApplicationShutdown`:
 *
 * - before `onApplicationShutdown`, where TypeORM and MikroORM close their pools and other modules
 *   their broker clients;
 * - before Nest waits for open HTTP connections, which may take longer than the process is given: a
 *   relay that was not stopped leaves leases behind, and what was in flight is sent again.
 *
 * Requests that still run then commit their messages as before; another instance publishes them, or
 * this one after its restart. The database object is closed last, because they still need it.
 */
import type { BeforeApplicationShutdown, OnApplicationBootstrap, OnApplicationShutdown } from "@nestjs/common";
import type { Logger, Relay } from "rowpost";
import type { RowpostOptions } from "./options.ts";

/** Where the relay of this process is. */
export type RelayPhase = "none" | "starting" | "running" | "stopped";

/** Starts and stops the relay with the application. */
export class RelayHost implements OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown {
  readonly #options: RowpostOptions;
  readonly #relay: Relay | undefined;
  readonly #logger: Logger;
  #phase: RelayPhase;

  constructor(options: RowpostOptions, relay: Relay | undefined, logger: Logger) {
    this.#options = options;
    this.#relay = relay;
    this.#logger = logger;
    this.#phase = relay === undefined ? "none" : "starting";
  }

  get phase(): RelayPhase {
    return this.#phase;
  }

  /** Rejects, and with it the application's start, where the relay cannot run as it is set up. */
  async onApplicationBootstrap(): Promise<void> {
    if (this.#relay === undefined) return;
    try {
      await this.#relay.start();
    } catch (error) {
      this.#phase = "stopped";
      await this.#closeDatabase();
      throw error;
    }
    this.#phase = "running";
    this.#logger.info("relay runs", { database: this.#options.database.label, owner: this.#relay.owner });
    if (process.listenerCount("SIGTERM") === 0) {
      this.#logger.warn(
        "SIGTERM will end this process without stopping the relay: call app.enableShutdownHooks() before app.listen()",
      );
    }
  }

  async beforeApplicationShutdown(): Promise<void> {
    if (this.#relay === undefined) return;
    this.#phase = "stopped";
    try {
      const { drained, unsettled } = await this.#relay.stop();
      if (drained) this.#logger.info("relay stopped", { ...this.#relay.counts });
      else
        this.#logger.warn("relay stopped before everything was settled; the next owner sends it again", { unsettled });
    } catch (error) {
      // The hooks of other modules have to run all the same.
      this.#logger.error("relay did not stop in order", { error });
    }
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#closeDatabase();
  }

  async #closeDatabase(): Promise<void> {
    try {
      await this.#options.database.close();
    } catch (error) {
      this.#logger.error("the database did not close in order", { error });
    }
  }
}
