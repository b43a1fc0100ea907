/**
 * A health indicator as `@nestjs/terminus` 10 to 12 takes them. It asks nobody: what it tells, the
 * relay has met.
 */
import type { Relay } from "rowpost";
import type { RelayHost, RelayPhase } from "./relay-host.ts";

/** What {@link RowpostHealthIndicator.isHealthy} answers: the result under the key. */
export type RowpostHealthResult<Key extends string = string> = Record<
  Key,
  {
    readonly status: "up" | "down";
    /** `none`: the module has no relay. */
    readonly relay: RelayPhase;
    readonly database?: string;
    /** Brokers that are away, with the reason. */
    readonly brokersAway?: Readonly<Record<string, string>>;
  }
>;

/**
 * Down if the relay should run and does not, or cannot reach its database. A broker that is away is
 * reported without being down: its messages wait in the table, and a restart would not help.
 */
export class RowpostHealthIndicator {
  readonly #host: RelayHost;
  readonly #brokersAway = new Map<string, string>();
  #databaseFault: string | undefined;

  constructor(host: RelayHost, relay: Relay | undefined) {
    this.#host = host;
    relay?.on("brokerAway", ({ broker, reason }) => {
      this.#brokersAway.set(broker, reason);
    });
    relay?.on("brokerBack", ({ broker }) => {
      this.#brokersAway.delete(broker);
    });
    relay?.on("databaseAway", ({ error }) => {
      this.#databaseFault = error instanceof Error ? error.message : String(error);
    });
    relay?.on("databaseBack", () => {
      this.#databaseFault = undefined;
    });
  }

  /**
   * `health.check([() => rowpost.isHealthy()])`. Rejects if the status is down, with an error that
   * terminus recognizes and whose `causes` hold the result.
   */
  async isHealthy<Key extends string = "rowpost">(key: Key = "rowpost" as Key): Promise<RowpostHealthResult<Key>> {
    const relay = this.#host.phase;
    const isDown = relay === "starting" || relay === "stopped" || this.#databaseFault !== undefined;
    const result = {
      [key]: {
        status: isDown ? "down" : "up",
        relay,
        ...(this.#databaseFault === undefined ? {} : { database: this.#databaseFault }),
        ...(this.#brokersAway.size === 0 ? {} : { brokersAway: Object.fromEntries(this.#brokersAway) }),
      },
    } as RowpostHealthResult<Key>;
    if (isDown) throw Object.assign(new Error(`${key} is down`), { isHealthCheckError: true, causes: result });
    return result;
  }
}
