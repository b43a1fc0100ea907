/** What the demo needs of the consuming side, whatever broker is between. */
import type { Broker, Database } from "rowpost";
import type { Orders } from "./orders.ts";

/** What a consumer of a real broker is given. */
export interface ConsumerParts {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly orders: Orders;
  /** The shop's. */
  readonly database: Database;
  /** Tells that something is made. */
  readonly say: (text: string) => void;
  readonly onTrouble: (text: string) => void;
  /** What was opened, to be closed when the run is over or could not begin: the last one first. */
  readonly atEnd: (close: () => unknown) => void;
}

export interface DemoConsumer {
  /** Where the relay publishes to. */
  readonly broker: Broker;
  readonly topic: string;
  /** For people: what receives the messages. */
  readonly label: string;
  /** What the consumer did to make life hard, with counts, such as `503`. */
  readonly trouble?: ReadonlyMap<string, number>;
}

/** Starts a consumer at a broker's URL; makes there what is missing. */
export type StartConsumer = (url: string, parts: ConsumerParts) => Promise<DemoConsumer>;
