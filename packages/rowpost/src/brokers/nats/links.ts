/** The connection in use: created on demand, replaced when it breaks or falls silent. */
import { onAbort } from "../../runtime/abort.ts";
import { closeQuietly } from "../../runtime/deadline.ts";
import type { PublishFailed } from "../broker.ts";
import { closedFailure, failed } from "../publishing/failures.ts";
import { createKeeper, type Keeper } from "../publishing/keeper.ts";
import type { ServerAddress } from "../settings/server-address.ts";
import { loadNats, type NatsConnection } from "./client.ts";
import { type Dialed, dial } from "./dial.ts";
import { type Link, openLink } from "./link.ts";
import type { Settings } from "./options.ts";

/** A server that does not answer within this time gets no more messages. */
const PING_TIMEOUT_MS = 2000;
const PAUSE_MS = 200;

const CLOSED = closedFailure("NATS");

export function createLinks(settings: Settings): Keeper<Link> {
  const { connection: given, inboxPrefix, ackTimeoutMs } = settings;
  let link: Link | undefined;
  let own: Dialed | undefined;

  async function open(connection: NatsConnection, closing: AbortSignal): Promise<Link | PublishFailed> {
    const opened = await openLink({ connection, inboxPrefix, ackTimeoutMs }, PING_TIMEOUT_MS);
    if ("scope" in opened) return opened;
    if (closing.aborted) {
      opened.release("CLOSED", CLOSED.reason);
      return CLOSED;
    }
    link = opened;
    return opened;
  }

  async function openGiven(connection: NatsConnection, closing: AbortSignal): Promise<Link | PublishFailed> {
    if (connection.isClosed()) {
      return failed(
        "connection",
        "CLOSED",
        "the NATS connection that was handed in is closed; make a new broker on a new one",
      );
    }
    // The subscription to receipts was refused, but may be allowed later.
    if (link?.isOver === false) {
      return failed("connection", "CONNECTION_LOST", "the NATS connection that was handed in has no server now");
    }
    return await open(connection, closing);
  }

  async function openOwn(address: ServerAddress, closing: AbortSignal): Promise<Link | PublishFailed> {
    await drop("CONNECTION_LOST", "the server did not answer any more");
    const client = await loadNats();
    if (closing.aborted) return CLOSED;
    const dialing = dial(client, address, settings);
    const stopFollowing = onAbort(closing, () => dialing.abandon());
    const dialed = await dialing.result;
    stopFollowing();
    if ("scope" in dialed) return dialed;
    if (closing.aborted) {
      await end(dialed);
      return CLOSED;
    }
    // From here on, closing ends it and the wait for an answer.
    own = dialed;
    const opened = await open(dialed.connection, closing);
    if ("scope" in opened) await drop(opened.code, opened.reason);
    return opened;
  }

  async function drop(code: string, reason: string): Promise<void> {
    link?.release(code, reason);
    link = undefined;
    const ending = own;
    own = undefined;
    if (ending !== undefined) await end(ending);
  }

  const keeper = createKeeper<Link>({
    ways:
      given === undefined
        ? settings.servers.map((address) => (closing) => openOwn(address, closing))
        : [(closing) => openGiven(given, closing)],
    isUsable: (one) => one.isUsable() && !one.isDoubtful,
    revives: async (one) => one.isUsable() && (await one.ping(PING_TIMEOUT_MS)) && one.isUsable(),
    pauseMs: given === undefined ? PAUSE_MS : 0,
    closed: CLOSED,
  });
  return {
    ...keeper,
    async close() {
      // Not awaited: a connection that was passed in may be silent.
      void keeper.close();
      await drop("CLOSED", "the NATS broker was closed before the receipt came");
    },
  };
}

async function end({ connection, destroy }: Dialed): Promise<void> {
  await closeQuietly(connection.close());
  destroy();
}
