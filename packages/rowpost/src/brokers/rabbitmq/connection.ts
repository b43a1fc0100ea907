/** The connection to a node, opened on demand and again after a loss; or the one passed in. */

import { hostname } from "node:os";
import { onAbort } from "../../runtime/abort.ts";
import { CLOSE_WITHIN_MS, closeQuietly } from "../../runtime/deadline.ts";
import { BrokerError, describeError } from "../../runtime/errors.ts";
import type { PublishFailed } from "../broker.ts";
import { closedFailure, failed } from "../publishing/failures.ts";
import { createKeeper } from "../publishing/keeper.ts";
import { nodeTls } from "../settings/tls-options.ts";
import { type AmqpChannel, type AmqpInside, loadAmqp, type RabbitmqConnection } from "./amqp.ts";
import { isOver, type Said, saidBy } from "./failures.ts";
import type { Settings } from "./options.ts";
import type { RabbitmqServer } from "./servers.ts";

export interface Link {
  readonly label: string;
  readonly lost: Said | undefined;
  /** Reason of a resource alarm, during which the server takes no messages. */
  readonly blocked: string | undefined;
  readonly frameBytes: number;
  /**
   * Rejects after `connectTimeoutMs`. The connection is then dead, and ended unless it was passed
   * in.
   */
  openChannel(): Promise<AmqpChannel>;
}

export interface Connection {
  open(): Promise<Link | PublishFailed>;
  /** Leaves no socket after half a second. A connection passed in stays open. */
  close(): Promise<void>;
}

/** amqplib's default in the negotiation. */
const FRAME_BYTES = 131_072;

export function createConnection(settings: Settings, onBlocked: (reason: string) => void): Connection {
  return settings.connection === undefined
    ? createOwnConnection(settings, onBlocked)
    : createGivenConnection(settings.connection, settings, onBlocked);
}

function createGivenConnection(
  given: RabbitmqConnection,
  settings: Settings,
  onBlocked: (reason: string) => void,
): Connection {
  const watched = watch(given, {
    label: "the connection that was handed in",
    settings,
    onBlocked,
  });

  function failureNow(): PublishFailed | undefined {
    const { label, lost, away } = watched;
    if (lost !== undefined) return failed("connection", lost.code, `${label} has ended: ${lost.reason}`);
    // It would make each caller wait, and then open a channel for each.
    return away && failed("connection", away.code, `${label} is away, and recovers by itself: ${away.reason}`);
  }

  return {
    open: () => Promise.resolve(failureNow() ?? watched),
    close() {
      watched.forget();
      return Promise.resolve();
    },
  };
}

function createOwnConnection(settings: Settings, onBlocked: (reason: string) => void): Connection {
  let link: OwnLink | undefined;
  const keeper = createKeeper<Link>({
    ways: settings.servers.map((server) => async (closing) => {
      try {
        link = await openOwn(server, settings, onBlocked, closing);
        return link;
      } catch (error) {
        return connectFailure(error, server);
      }
    }),
    isUsable: ({ lost }) => lost === undefined,
    closed: CLOSED,
  });
  return {
    open: keeper.get,
    async close() {
      await keeper.close();
      await link?.close();
    },
  };
}

interface OwnLink extends Link {
  close(): Promise<void>;
}

async function openOwn(
  server: RabbitmqServer,
  settings: Settings,
  onBlocked: (reason: string) => void,
  stop: AbortSignal,
): Promise<OwnLink> {
  const { connect } = await loadAmqp();
  const { label, secure, host, port, vhost, username, password } = server;
  // Ends the socket in any state. amqplib's own close waits for the server's answer.
  const socket = new AbortController();
  const end = (reason: string): void => socket.abort(new BrokerError("CONNECTION_GIVEN_UP", reason));
  const stopFollowing = onAbort(stop, () => end("the RabbitMQ broker was closed"));
  const opening = connect(
    {
      protocol: secure ? "amqps" : "amqp",
      hostname: host,
      port,
      // amqplib decodes it again.
      vhost: encodeURIComponent(vhost),
      username,
      password,
      heartbeat: settings.heartbeatSeconds,
    },
    {
      ...(secure && nodeTls(settings.tls)),
      // Nagle's algorithm would delay data smaller than a segment.
      noDelay: true,
      signal: socket.signal,
      clientProperties: { connection_name: `rowpost ${hostname()} ${process.pid}` },
    },
  );
  const { connectTimeoutMs } = settings;
  try {
    const connection = await within(opening, connectTimeoutMs, () => end(silence(label, connectTimeoutMs)));
    // `close` reports it again. Without a listener the process would end.
    connection.on("error", () => undefined);
    const watched = watch(connection, { label, settings, onBlocked, end });
    connection.on("close", () => endSoon(stop, end));
    return Object.assign(watched, {
      async close() {
        if (watched.lost === undefined) await closeQuietly(connection.close());
        end("the RabbitMQ broker was closed");
      },
    });
  } catch (error) {
    throw socket.signal.aborted ? socket.signal.reason : error;
  } finally {
    stopFollowing();
  }
}

/**
 * Ends the socket of a lost connection after half a second, enough for amqplib to answer a server
 * that says goodbye. amqplib itself only ends its side, which a frozen server never answers, so the
 * socket would keep the process alive.
 */
function endSoon(stop: AbortSignal, end: (reason: string) => void): void {
  const reason = "the connection was lost";
  const timer = setTimeout(() => {
    stopFollowing();
    end(reason);
  }, CLOSE_WITHIN_MS);
  // An open socket keeps the process alive by itself.
  timer.unref();
  const stopFollowing = onAbort(stop, () => {
    clearTimeout(timer);
    end(reason);
  });
}

interface WatchOptions {
  readonly label: string;
  readonly settings: Settings;
  readonly onBlocked: (reason: string) => void;
  readonly end?: (reason: string) => void;
}

interface Watched extends Link {
  /** Why a self-recovering connection is disconnected. Undefined while connected. */
  readonly away: Said | undefined;
  forget(): void;
}

function watch(connection: RabbitmqConnection, options: WatchOptions): Watched {
  const { label, settings, onBlocked, end } = options;
  const inside = (connection as AmqpInside).connection;
  let lost: Said | undefined;
  let away: Said | undefined;
  let blocked: string | undefined = inside?.blocked === true ? "a resource alarm" : undefined;
  const listeners: Readonly<Record<string, (...given: unknown[]) => void>> = {
    // Has the error if one was the reason. A self-recovering connection closes when it gives up.
    close: (error: unknown) => {
      lost = error === undefined ? { code: "CONNECTION_CLOSED", reason: "it was closed" } : saidBy(error);
    },
    blocked: (reason: unknown) => {
      blocked = String(reason);
      onBlocked(blocked);
    },
    unblocked: () => {
      blocked = undefined;
    },
    // Of a self-recovering connection: the next one reports its alarms anew.
    disconnect: (error: unknown) => {
      away = saidBy(error);
      blocked = undefined;
    },
    connect: () => {
      away = undefined;
    },
  };
  for (const [event, listener] of Object.entries(listeners)) connection.on(event, listener);
  return {
    label,
    get lost() {
      return lost;
    },
    get away() {
      return away;
    },
    get blocked() {
      return blocked;
    },
    frameBytes: typeof inside?.frameMax === "number" ? inside.frameMax : FRAME_BYTES,
    async openChannel() {
      const opening = connection.createConfirmChannel();
      const { connectTimeoutMs } = settings;
      try {
        return await within(opening, connectTimeoutMs, () => {
          // A blocked connection does not answer, but is not dead.
          if (blocked === undefined) end?.(`${label} opened no channel within ${connectTimeoutMs} ms`);
        });
      } catch (error) {
        opening.then((late) => late.close()).catch(() => undefined);
        // A node that shuts down may have ended the connection before the listeners were added.
        if (end !== undefined && isOver(error)) {
          lost ??= saidBy(error);
          end(`${label} ended the connection`);
        }
        throw error;
      }
    },
    forget() {
      for (const [event, listener] of Object.entries(listeners)) connection.off(event, listener);
    },
  };
}

/** The value, or a rejection after `ms`; `tooLate` is called first. */
async function within<Value>(promise: Promise<Value>, ms: number, tooLate: () => void): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      tooLate();
      reject(new BrokerError("CONNECT_TIMEOUT", `no answer within ${ms} ms`, { retriable: true }));
    }, ms);
  });
  try {
    return await Promise.race([promise, expired]);
  } finally {
    clearTimeout(timer);
  }
}

function silence(label: string, afterMs: number): string {
  return `no answer from ${label} within ${afterMs} ms: is it up, and is this its AMQP port (5672, with TLS 5671; not 15672, the console)?`;
}

export const CLOSED: PublishFailed = closedFailure("RabbitMQ");

/** Why connecting failed, with advice. Nothing was handed over. */
function connectFailure(error: unknown, { label, secure, vhost, username }: RabbitmqServer): PublishFailed {
  const { code, reason } = saidBy(error);
  if (code === "MISSING_PEER") return failed("connection", code, describeError(error));
  if (/^Handshake terminated by server/.test(error instanceof Error ? error.message : "")) {
    const advice = `check user (${username}) and password; guest may only log in from the server's own host`;
    return failed("connection", code, `${label}: ${reason}; ${advice}`);
  }
  // amqplib hides the reason: a missing or forbidden virtual host, or a limit.
  if (/Expected ConnectionOpenOk; got <ConnectionClose/.test(reason)) {
    const advice = "does it exist, may the user use it, and is its connection limit not reached?";
    return failed("connection", "VHOST_REFUSED", `${label} refused the virtual host ${vhost}: ${advice}`);
  }
  if (code === "CONNECTION_GIVEN_UP") return failed("connection", "CONNECT_TIMEOUT", reason);
  const advice = secure
    ? "is the server running, with TLS on this port (5671) and a certificate that tls.ca trusts?"
    : "is the server running, and is this its AMQP port without TLS (5672)?";
  return failed("connection", code === "CONNECTION_LOST" ? "CONNECT_FAILED" : code, `${label}: ${reason}; ${advice}`);
}
