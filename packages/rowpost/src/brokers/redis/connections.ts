/**
 * The connection of a broker: created on demand, shared by all calls, replaced when it broke, went
 * silent or leads to the wrong server.
 *
 * A call that hits its deadline leaves bytes behind that may still arrive, so its connection is
 * retired: running calls finish on it, new calls get a new one, and its last user destroys it with
 * anything unsent. A frozen server thus causes `unknown` once; later messages are certainly not
 * handed over until a new connection is greeted.
 */

import { withDeadline } from "../../runtime/deadline.ts";
import { closedFailure } from "../publishing/failures.ts";
import { createKeeper, type Keeper } from "../publishing/keeper.ts";
import type { IoClient } from "./client.ts";
import type { Failure } from "./failures.ts";
import { failureOfConnect } from "./failures.ts";
import type { ServerFacts } from "./inspect.ts";
import { inspectServer } from "./inspect.ts";
import type { Settings } from "./options.ts";

export interface LentConnection {
  readonly client: IoClient;
  readonly maxBulkBytes: number;
  retire(): void;
  giveBack(): void;
}

export interface Connections extends Pick<Keeper<Link, Failure>, "current" | "get"> {
  readonly lend: (link: Link) => LentConnection;
  /** Asks the server on a lent connection. Undefined: it can be published to. */
  verify(): Promise<Failure | undefined>;
  /** Ends all. Resolves when their sockets are gone. */
  close(): Promise<void>;
}

/** Longer than ioredis takes to destroy a socket whose peer is silent. */
const END_WITHIN_MS = 1_000;

interface Link {
  readonly client: IoClient;
  readonly ended: Promise<void>;
  users: number;
  over: boolean;
  hasEnded: boolean;
  lastError: unknown;
  facts: ServerFacts | undefined;
}

export function createConnections(settings: Settings): Connections {
  const links = new Set<Link>();
  const keeper = createKeeper<Link, Failure>({ ways: [open], isUsable: ({ over }) => !over, closed: CLOSED });

  function watch(client: IoClient): Link {
    let markEnded = (): void => undefined;
    const ended = new Promise<void>((resolve) => {
      markEnded = resolve;
    });
    const link: Link = {
      client,
      ended,
      users: 0,
      over: false,
      hasEnded: false,
      lastError: undefined,
      facts: undefined,
    };
    links.add(link);
    // Without a listener ioredis prints errors. The first is the reason; later ones report the
    // close.
    client.on("error", (error) => {
      link.lastError ??= error;
    });
    client.on("close", () => {
      link.over = true;
    });
    client.on("end", () => {
      link.over = true;
      link.hasEnded = true;
      links.delete(link);
      markEnded();
    });
    return link;
  }

  async function open(closing: AbortSignal): Promise<Link | Failure> {
    let client: IoClient;
    try {
      client = await settings.createClient();
    } catch (error) {
      return failureOfConnect(error, settings.label);
    }
    if (closing.aborted) return CLOSED;
    const link = watch(client);
    try {
      const facts = await withDeadline(() => greet(client), {
        what: `connecting to ${settings.label}`,
        ms: settings.connectTimeoutMs,
      });
      if ("status" in facts) {
        end(link);
        return facts;
      }
      if (link.over) return failureOfConnect(link.lastError ?? new Error("it was closed at once"), settings.label);
      link.facts = facts;
      return link;
    } catch (error) {
      end(link);
      return failureOfConnect(link.lastError ?? error, settings.label);
    }
  }

  async function greet(client: IoClient): Promise<ServerFacts | Failure> {
    await client.connect();
    return await inspectServer(client, settings);
  }

  function end(link: Link): void {
    link.over = true;
    if (!link.hasEnded) link.client.disconnect();
  }

  function lent(link: Link): LentConnection {
    link.users += 1;
    return {
      client: link.client,
      maxBulkBytes: link.facts?.maxBulkBytes ?? 0,
      retire() {
        link.over = true;
      },
      giveBack() {
        link.users -= 1;
        if (link.over && link.users === 0) end(link);
      },
    };
  }

  async function verify(): Promise<Failure | undefined> {
    const link = await keeper.get();
    if ("status" in link) return link;
    const borrowed = lent(link);
    try {
      const what = `an answer of ${settings.label}`;
      const ms = settings.connectTimeoutMs;
      const facts = await withDeadline(() => inspectServer(borrowed.client, settings), { what, ms });
      return "status" in facts ? facts : undefined;
    } catch (error) {
      borrowed.retire();
      return failureOfConnect(error, settings.label);
    } finally {
      borrowed.giveBack();
    }
  }

  return {
    current: keeper.current,
    get: keeper.get,
    lend: lent,
    verify,
    async close() {
      const closing = keeper.close();
      for (const link of links) end(link);
      // Connecting clients fail now; one still being loaded is not used.
      await closing;
      const ends = Promise.all([...links].map(({ ended }) => ended));
      await withDeadline(() => ends, { what: "closing", ms: END_WITHIN_MS }).catch(() => undefined);
    },
  };
}

const CLOSED: Failure = { ...closedFailure("redis"), reconnect: true };
