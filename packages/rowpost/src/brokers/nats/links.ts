/** The connection in use: made at the first use, replaced when it broke or fell silent. */

import { closeQuietly } from "../../runtime/deadline.ts";
import type { PublishFailed } from "../broker.ts";
import { closedFailure, failed } from "../publishing/failures.ts";
import type { NatsModule } from "./client.ts";
import { type Dialed, type Dialing, dial } from "./dial.ts";
import { type Link, openLink } from "./link.ts";
import type { Settings } from "./options.ts";

export interface Links {
  /** The link, or why there is none. Never rejects; takes as long as connecting does. */
  link(): Promise<Link | PublishFailed>;
  /** The link, when it is there and not in doubt. */
  current(): Link | undefined;
  /** Ends it; what is on its way is settled as unknown. */
  close(): Promise<void>;
}

/** A server that does not answer for so long gets nothing more. */
const PING_TIMEOUT_MS = 2000;
/** A failed connect stands for the next ones so long, so that nobody knocks without pause. */
const RETRY_AFTER_MS = 200;

const CLOSED = closedFailure("NATS");

/** `client` is needed for a connection of our own only. */
export function createLinks(settings: Settings, client: NatsModule | undefined): Links {
  let link: Link | undefined;
  let own: Dialed | undefined;
  let dialing: Dialing | undefined;
  let finding: Promise<Link | PublishFailed> | undefined;
  let lastFailure: { readonly failure: PublishFailed; readonly until: number } | undefined;
  let isClosed = false;
  /** The server that is tried first: the one that answered last. */
  let first = 0;

  const current = (): Link | undefined => (link?.isUsable() === true && !link.isDoubtful ? link : undefined);

  async function find(): Promise<Link | PublishFailed> {
    if (isClosed) return CLOSED;
    if (link?.isUsable() === true && (await link.ping(PING_TIMEOUT_MS)) && link.isUsable()) return link;
    if (settings.connection !== undefined) return await useGiven();
    await drop("CONNECTION_LOST", "the server did not answer any more");
    if (lastFailure !== undefined && performance.now() < lastFailure.until) return lastFailure.failure;
    const found = await connect();
    lastFailure = "scope" in found ? { failure: found, until: performance.now() + RETRY_AFTER_MS } : undefined;
    return found;
  }

  async function useGiven(): Promise<Link | PublishFailed> {
    const { connection, inboxPrefix, ackTimeoutMs } = settings;
    if (connection === undefined || connection.isClosed()) {
      return failed(
        "connection",
        "CLOSED",
        "the NATS connection that was handed in is closed; make a new broker on a new one",
      );
    }
    // It was refused its receipts, which may be allowed again.
    if (link?.isOver === false) {
      return failed("connection", "CONNECTION_LOST", "the NATS connection that was handed in has no server now");
    }
    const opened = await openLink({ connection, inboxPrefix, ackTimeoutMs, onEnd: forget }, PING_TIMEOUT_MS);
    return taken(opened);
  }

  /** Each server once, beginning with the one that worked. */
  async function connect(): Promise<Link | PublishFailed> {
    let last: PublishFailed = CLOSED;
    for (let turn = 0; turn < settings.servers.length; turn += 1) {
      const index = (first + turn) % settings.servers.length;
      const found = await connectTo(index);
      if (isClosed || !("scope" in found)) return found;
      last = found;
    }
    return last;
  }

  async function connectTo(index: number): Promise<Link | PublishFailed> {
    const address = settings.servers[index];
    if (address === undefined || client === undefined || isClosed) return CLOSED;
    dialing = dial(client, address, settings);
    const dialed = await dialing.result;
    dialing = undefined;
    if ("scope" in dialed) return dialed;
    if (isClosed) await end(dialed);
    // From here on close() ends it, and with it the wait for an answer.
    own = dialed;
    const { inboxPrefix, ackTimeoutMs } = settings;
    const opened = await openLink(
      { connection: dialed.connection, inboxPrefix, ackTimeoutMs, onEnd: forget },
      PING_TIMEOUT_MS,
    );
    const result = taken(opened);
    if ("scope" in result) await drop(result.code, result.reason);
    else first = index;
    return result;
  }

  function taken(opened: Link | PublishFailed): Link | PublishFailed {
    if ("scope" in opened) return opened;
    if (isClosed) {
      opened.release("CLOSED", CLOSED.reason);
      return CLOSED;
    }
    link = opened;
    return opened;
  }

  function forget(): void {
    if (link?.isUsable() !== true) link = undefined;
  }

  async function drop(code: string, reason: string): Promise<void> {
    link?.release(code, reason);
    link = undefined;
    const ending = own;
    own = undefined;
    if (ending !== undefined) await end(ending);
  }

  return {
    current,
    link() {
      const usable = current();
      if (usable !== undefined) return Promise.resolve(usable);
      finding ??= find().finally(() => {
        finding = undefined;
      });
      return finding;
    },
    async close() {
      isClosed = true;
      dialing?.abandon();
      await drop("CLOSED", "the NATS broker was closed before the receipt came");
    },
  };
}

async function end({ connection, destroy }: Dialed): Promise<void> {
  await closeQuietly(connection.close());
  destroy();
}
