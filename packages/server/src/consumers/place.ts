import type { Transaction } from "rowpost";
import type { ConsumeOptions, Consumption } from "rowpost/consume";

export interface ConsumePlace {
  readonly url: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** RabbitMQ: the queue; NATS and Redis: the stream. */
  readonly topic: string;
  readonly group: string;
}

export type CommonOptions = ConsumeOptions<unknown, Transaction> & { readonly unhandled?: () => void };

export type Consume = (place: ConsumePlace, options: CommonOptions) => Promise<Consumption>;
