/** `--broker queue:` and `queue:DATABASE-URL`: the message queue, here or in another database. */
import type { Broker, Database } from "rowpost";
import { createQueue, type Queue, queueBroker } from "rowpost/queue";
import { DATABASE_PASSWORD_VARIABLE, openDatabase, parseDatabaseUrl } from "./database-url.ts";
import { InputError } from "./failure.ts";

/** Variable with the password of the queue's own database. */
const QUEUE_PASSWORD_VARIABLE = "ROWPOST_QUEUE_PASSWORD";

type Environment = Readonly<Record<string, string | undefined>>;

export interface OpenedQueue {
  readonly queue: Queue;
  close(): Promise<void>;
}

/** The queue of the URL; `queue:` is in the relay's own database. */
export async function openQueue(url: string, environment: Environment, database: Database): Promise<OpenedQueue> {
  const apart = url.slice(url.indexOf(":") + 1);
  const own = apart === "" ? undefined : await openApart(apart, environment);
  const queue = createQueue({ database: own ?? database, producerGroup: environment["ROWPOST_PRODUCER_GROUP"] });
  return {
    queue,
    async close() {
      await queue.close();
      await own?.close();
    },
  };
}

/** The broker, which also closes the queue. */
export async function queueBrokerFromUrl(url: string, environment: Environment, database: Database): Promise<Broker> {
  const opened = await openQueue(url, environment, database);
  const broker = queueBroker({ queue: opened.queue });
  return {
    ...broker,
    async close() {
      await broker.close();
      await opened.close();
    },
  };
}

/** The password of the messages' database is not used for another one. */
async function openApart(url: string, environment: Environment): Promise<Database> {
  try {
    const password = { [DATABASE_PASSWORD_VARIABLE]: environment[QUEUE_PASSWORD_VARIABLE] };
    return await openDatabase(parseDatabaseUrl(url, password));
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    const told = error.message
      .replace("--database", "--broker queue:")
      .replace(DATABASE_PASSWORD_VARIABLE, QUEUE_PASSWORD_VARIABLE);
    throw new InputError(told);
  }
}
