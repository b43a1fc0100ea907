import type { Transaction } from "rowpost";
import type { ConsumeOptions, Consumption } from "rowpost/consume";

export interface ConsumePlace {
  /** URL of the broker, with its variables applied. */
  readonly url: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** RabbitMQ: the queue; NATS and Redis: the stream. */
  readonly topic: string;
  /** NATS: the consumer of the stream. Unused for RabbitMQ. */
  readonly group: string;
}

export type CommonOptions = ConsumeOptions<unknown, Transaction> & { readonly unhandled?: () => void };

/** Starts to read; throws the broker's error. */
export type Consume = (place: ConsumePlace, options: CommonOptions) => Promise<Consumption>;
