import type { Broker, Database } from "rowpost";
import type { Orders } from "./orders.ts";

export interface ConsumerParts {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly orders: Orders;
  readonly database: Database;
  readonly say: (text: string) => void;
  readonly onTrouble: (text: string) => void;
  /** Adds a cleanup for the end of the run or a failed start; the last one runs first. */
  readonly atEnd: (close: () => unknown) => void;
}

export interface DemoConsumer {
  readonly broker: Broker;
  readonly topic: string;
  readonly label: string;
  /** Simulated failures with counts, such as `503`. */
  readonly trouble?: ReadonlyMap<string, number>;
}

/** Starts a consumer at a broker's URL and creates what is missing there. */
export type StartConsumer = (url: string, parts: ConsumerParts) => Promise<DemoConsumer>;
