/** LISTEN on its own connection. A lost notification costs only latency. */
import { cut, type Driver, end, type PgClient } from "./driver.ts";
import { translateError } from "./errors.ts";

/** First and longest wait before reconnecting. */
const RECONNECT_MIN_MS = 100;
const RECONNECT_MAX_MS = 5_000;
/** Probe interval: a connection dropped by a firewall stays silent for hours. */
const PROBE_EVERY_MS = 30_000;
const PROBE_TIMEOUT_MS = 5_000;

/** Options of {@link listenOn}. */
export interface ListenOptions {
  readonly driver: Driver;
  readonly channel: string;
  /**
   * Called with the payload of a notification, or undefined after each connect, when some were
   * missed.
   */
  readonly heard: (payload?: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Listens until closed and reconnects after a loss. Rejects if the first connection fails. */
export async function listenOn(options: ListenOptions): Promise<{ close(): Promise<void> }> {
  const { driver, channel, heard } = options;
  let closed = false;
  let current: PgClient | undefined;
  let waitMs = RECONNECT_MIN_MS;
  let retry: NodeJS.Timeout | undefined;
  let probe: NodeJS.Timeout | undefined;

  async function open(): Promise<void> {
    const client = await driver.connect("listen", options.signal).catch((error: unknown) => {
      throw translateError(error, `listen on ${driver.label}`);
    });
    const lost = (): void => {
      if (current === client) reconnectLater();
    };
    client.on("error", lost);
    client.on("end", lost);
    client.on("notification", (notification) => heard((notification as { readonly payload?: string }).payload));
    try {
      await client.query({ text: `LISTEN "${channel.replaceAll('"', '""')}"` });
    } catch (error) {
      cut(client);
      throw error;
    }
    if (closed) {
      await end(client);
      return;
    }
    current = client;
    waitMs = RECONNECT_MIN_MS;
    probeLater(client);
    heard();
  }

  function reconnectLater(): void {
    current = undefined;
    clearTimeout(probe);
    if (closed) return;
    retry = setTimeout(() => {
      open().catch(reconnectLater);
    }, waitMs).unref();
    waitMs = Math.min(waitMs * 2, RECONNECT_MAX_MS);
  }

  function probeLater(client: PgClient): void {
    probe = setTimeout(() => {
      const deadline = setTimeout(() => cut(client), PROBE_TIMEOUT_MS);
      client
        .query({ text: "SELECT 1" })
        .then(
          () => probeLater(client),
          () => cut(client),
        )
        .finally(() => clearTimeout(deadline));
    }, PROBE_EVERY_MS).unref();
  }

  await open();
  return {
    async close() {
      closed = true;
      clearTimeout(retry);
      clearTimeout(probe);
      const client = current;
      current = undefined;
      if (client !== undefined) await end(client);
    },
  };
}
