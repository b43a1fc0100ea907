/**
 * One connection to one server. Requests go out at once, and answers come back in any order with
 * the number of their request.
 */
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { AbortScope } from "../publishing/abort-scope.ts";
import type { AccessKeys } from "../rocketmq/access-keys.ts";
import { addressLabel, type ServerAddress } from "../settings/server-address.ts";
import { nodeTls, type TlsOptions } from "../settings/tls-options.ts";
import { createFrameReader, encodeHead, type Frame, type Request } from "./frames.ts";
import { signed } from "./signature.ts";

export interface Unanswered {
  readonly answer?: undefined;
  /** False: certainly not handed over. True: it may have been carried out. */
  readonly written: boolean;
  readonly code: string;
  readonly reason: string;
}

export type Exchange = { readonly answer: Frame } | Unanswered;

export interface Link {
  /** Open, and no request timed out. Once false, it stays false. */
  readonly isUsable: boolean;
  /** Never rejects. */
  exchange(request: Request, options: ExchangeOptions): Promise<Exchange>;
  end(code: string, reason: string): void;
}

export interface ExchangeOptions {
  readonly timeoutMs: number;
  /** Aborts the wait. Default: only the timeout does. */
  readonly scope?: AbortScope | undefined;
}

export interface LinkOptions {
  readonly tls: TlsOptions | undefined;
  readonly keys: AccessKeys | undefined;
  readonly connectTimeoutMs: number;
  readonly closing: AbortScope;
}

/** A wait abandoned after this long without a byte from the server makes the link suspect. */
const SILENCE_MS = 1000;

/** Resolves to a link, or to the failure. Never rejects. */
export function connectTo(address: ServerAddress, options: LinkOptions): Promise<Link | Unanswered> {
  const { tls, connectTimeoutMs, closing } = options;
  const where = addressLabel(address);
  return new Promise((resolve) => {
    const socket = tls === undefined ? connectTcp(address) : connectTls({ ...address, ...nodeTls(tls) });
    const fail = (code: string, reason: string): void => {
      settle();
      socket.destroy();
      // Node's own message usually has the address.
      const words = reason.includes(where) ? reason : `${where}: ${reason}`;
      resolve({ written: false, code, reason: words });
    };
    const timer = setTimeout(
      () => fail("CONNECT_TIMEOUT", `no connection within ${connectTimeoutMs} ms`),
      connectTimeoutMs,
    );
    const stopFollowing = closing.onAbort(() => fail("CLOSED", "the connection was given up"));
    const onError = (error: Error): void => {
      const { code = "CONNECT_FAILED" } = error as NodeJS.ErrnoException;
      fail(code, error.message || code);
    };
    const onClose = (): void => fail("CONNECTION_LOST", "the connection was closed at once");
    function settle(): void {
      clearTimeout(timer);
      stopFollowing();
      socket.off("error", onError).off("close", onClose);
      socket.on("error", () => undefined);
    }
    socket.on("error", onError).on("close", onClose);
    socket.once(tls === undefined ? "connect" : "secureConnect", () => {
      settle();
      resolve(createLink(socket, where, options));
    });
  });
}

function createLink(socket: Socket, where: string, { keys }: LinkOptions): Link {
  const waiting = new Map<number, (exchange: Exchange) => void>();
  const reader = createFrameReader();
  let isOpen = true;
  let isDoubtful = false;
  let lastOpaque = 0;
  let heardAt = performance.now();
  let isCorked = false;
  let lastError: string | undefined;

  function end(code: string, reason: string): void {
    if (!isOpen) return;
    isOpen = false;
    socket.destroy();
    for (const conclude of [...waiting.values()]) conclude({ written: true, code, reason: `${where}: ${reason}` });
  }

  function onData(chunk: Buffer): void {
    heardAt = performance.now();
    try {
      for (const frame of reader.read(chunk)) {
        // Requests of the broker concern consumers and transactions, and need no answer here.
        if (frame.isAnswer) waiting.get(frame.opaque)?.({ answer: frame });
      }
    } catch (error) {
      end("PROTOCOL", error instanceof Error ? error.message : String(error));
    }
  }

  /** The server may be frozen or gone, so it gets nothing new. */
  function doubt(): void {
    isDoubtful = true;
    if (waiting.size === 0) end("CONNECTION_LOST", "the server did not answer any more");
  }

  /** Writes of one turn of the event loop share a packet, as far as they fit. */
  function write(head: Buffer, body: Buffer | undefined): void {
    if (!isCorked) {
      isCorked = true;
      socket.cork();
      process.nextTick(() => {
        isCorked = false;
        socket.uncork();
      });
    }
    socket.write(head);
    if (body !== undefined && body.length > 0) socket.write(body);
  }

  socket.setNoDelay(true);
  socket.setKeepAlive(true, 30_000);
  socket.on("data", onData);
  socket.on("error", (error: NodeJS.ErrnoException) => {
    lastError = error.code ?? error.message;
  });
  socket.on("end", () => socket.destroy());
  socket.on("close", () => {
    end(lastError ?? "CONNECTION_LOST", "the connection broke before the answer came");
  });

  return {
    get isUsable() {
      return isOpen && !isDoubtful && !socket.destroyed;
    },
    exchange(request, { timeoutMs, scope }) {
      if (!isOpen || socket.destroyed) {
        return Promise.resolve({
          written: false,
          code: "CONNECTION_LOST",
          reason: `${where}: the connection broke before this request`,
        });
      }
      lastOpaque = (lastOpaque + 1) & 0x7f_ff_ff_ff;
      const opaque = lastOpaque;
      return new Promise((resolve) => {
        const sentAt = performance.now();
        const giveUp = (code: string, reason: string): void => {
          conclude({ written: true, code, reason });
          if (performance.now() - Math.max(sentAt, heardAt) >= Math.min(SILENCE_MS, timeoutMs)) doubt();
        };
        const timer = setTimeout(() => giveUp("TIMEOUT", `${where} gave no answer within ${timeoutMs} ms`), timeoutMs);
        let stopFollowing = (): void => undefined;
        function conclude(exchange: Exchange): void {
          clearTimeout(timer);
          stopFollowing();
          waiting.delete(opaque);
          resolve(exchange);
          if (isDoubtful && waiting.size === 0) end("CONNECTION_LOST", "the server did not answer any more");
        }
        waiting.set(opaque, conclude);
        const { fields, code, body } = signed(request, keys);
        write(encodeHead({ code, fields, body }, opaque), body);
        stopFollowing =
          scope?.onAbort(() =>
            scope.ending === "closed"
              ? giveUp("CLOSED", "the RocketMQ broker was closed before the answer came")
              : giveUp("DEADLINE", `${where} gave no answer before the publish deadline`),
          ) ?? stopFollowing;
      });
    },
    end,
  };
}
