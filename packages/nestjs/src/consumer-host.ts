import { randomUUID } from "node:crypto";
import type { DiscoveryService } from "@nestjs/core";
import { ConfigurationError, type Logger } from "rowpost";
import { createInbox, type Inbox, type InboxHousekeeping } from "rowpost/inbox";
import {
  type ConsumerNames,
  dispatch,
  findHandlers,
  handlersByConsumer,
  type MessageHandler,
} from "./message-handlers.ts";
import type { ConsumerParts, RowpostOptions, RunningConsumer, StartConsumer } from "./options.ts";

/** The running consumers of a module by name. */
export class RowpostConsumers {
  readonly #running: ReadonlyMap<string, RunningConsumer>;

  constructor(running: ReadonlyMap<string, RunningConsumer>) {
    this.#running = running;
  }

  /**
   * The result of the consumer's function in `consumers`, such as that of `consumeWebhooks`. Throws
   * `ConfigurationError` if it does not run.
   */
  get<Running extends RunningConsumer = RunningConsumer>(name: string): Running {
    const running = this.#running.get(name);
    if (running === undefined) throw new ConfigurationError(`the consumer ${name} does not run`);
    return running as Running;
  }
}

export class ConsumerHost {
  readonly #options: RowpostOptions;
  readonly #discovery: DiscoveryService;
  readonly #logger: Logger;
  readonly #running = new Map<string, RunningConsumer>();
  #byConsumer: ReadonlyMap<string, ReadonlyMap<string, MessageHandler>> = new Map();
  #housekeeping: InboxHousekeeping | undefined;
  #starting: Promise<void> | undefined;
  #isClosing = false;
  readonly consumers: RowpostConsumers = new RowpostConsumers(this.#running);

  constructor(options: RowpostOptions, discovery: DiscoveryService, logger: Logger) {
    this.#options = options;
    this.#discovery = discovery;
    this.#logger = logger;
  }

  /** Each name in this module's `consumers`, and whether this process runs it. */
  get switches(): readonly (readonly [name: string, start: StartConsumer | false])[] {
    return Object.entries(this.#options.consumers ?? {});
  }

  /** Finds the methods. Throws `ConfigurationError`. */
  bind(): void {
    const modules = this.#discovery
      .getProviders()
      .map(({ instance }) => instance as unknown)
      .filter((each) => each instanceof ConsumerHost);
    this.#byConsumer = handlersByConsumer(namesIn([...new Set(modules)]), findHandlers(this.#discovery));
  }

  /** One after the other. Rejects with the first error. */
  async start(): Promise<void> {
    this.#starting = this.#startAll();
    await this.#starting;
  }

  async #startAll(): Promise<void> {
    for (const [name, start] of this.switches) {
      if (this.#isClosing) return;
      if (start === false) continue;
      const inbox = this.#inboxOf(name);
      if (inbox !== "none" && this.#housekeeping === undefined) {
        await checkTable(inbox);
        this.#housekeeping = inbox.keepHouse();
      }
      const byType = this.#byConsumer.get(name) ?? new Map<string, MessageHandler>();
      this.#running.set(
        name,
        await start({
          inbox,
          logger: this.#logger,
          handler: (message, context) => dispatch(name, byType, message, context),
        }),
      );
      this.#logger.info("consumer runs", { consumer: name, types: [...byType.keys()] });
    }
  }

  /** In parallel, each within its `drainTimeoutMs`. Never rejects. */
  async close(): Promise<void> {
    this.#isClosing = true;
    // A consumer that is still starting during a shutdown would run on a closed database.
    await this.#starting?.catch(() => undefined);
    const closing = [...this.#running].map(async ([name, running]) => {
      try {
        await running.close();
        this.#logger.info("consumer closed", { consumer: name });
      } catch (error) {
        this.#logger.error("a consumer did not close in order", { consumer: name, error });
      }
    });
    this.#running.clear();
    await Promise.all([...closing, this.#housekeeping?.stop()]);
  }

  #inboxOf(consumer: string): ConsumerParts["inbox"] {
    const { database, inbox = {} } = this.#options;
    return inbox === "none" ? "none" : createInbox({ logger: this.#logger, ...inbox, database, consumer });
  }
}

/** Throws `ConfigurationError` if two modules use the same name. */
function namesIn(modules: readonly ConsumerHost[]): ConsumerNames {
  const switches = modules.flatMap((each) => each.switches);
  const all = switches.map(([name]) => name);
  const twice = all.find((name, index) => all.indexOf(name) !== index);
  if (twice !== undefined) throw new ConfigurationError(`two RowpostModules have a consumer ${twice}: rename one`);
  return { all, run: switches.filter(([, start]) => start !== false).map(([name]) => name) };
}

/** Handles a message and rolls it back: without its table the inbox would block every message. */
async function checkTable(inbox: Inbox): Promise<void> {
  const done = new Error("rolled back");
  const message = { type: "rowpost", key: randomUUID() };
  try {
    await inbox.handle(inbox.database, { message }, () => Promise.reject(done));
  } catch (error) {
    if (error !== done) throw error;
  }
}
