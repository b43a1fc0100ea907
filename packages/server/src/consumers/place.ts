/** Where a consumer reads, by the URL of its broker. */
import type { Transaction } from "rowpost";
import type { ConsumeOptions, Consumption } from "rowpost/consume";

export interface ConsumePlace {
  /** Of the broker, with the variables that it reads. */
  readonly url: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** RabbitMQ: the queue; NATS and Redis: the stream. */
  readonly topic: string;
  /** NATS: the consumer of the stream. RabbitMQ has none. */
  readonly group: string;
}

/** What every consumer is told, whatever its broker. */
export type CommonOptions = ConsumeOptions<unknown, Transaction> & { readonly unhandled?: () => void };

/** Begins to read; throws what the broker says to that. */
export type Consume = (place: ConsumePlace, options: CommonOptions) => Promise<Consumption>;
