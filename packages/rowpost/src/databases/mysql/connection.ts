/** Time limit and cut of both drivers' connections. */
import { onAbort } from "../../runtime/abort.ts";
import { DatabaseUnavailableError } from "../../runtime/errors.ts";
import type { QueryResult } from "../../transactions/executor.ts";
import type { DriverConnection } from "./driver.ts";

export interface RawConnection extends Pick<DriverConnection, "end" | "onLost"> {
  query(text: string, params: readonly unknown[]): Promise<QueryResult>;
  /**
   * Destroys the socket. Not the driver's destroy(), which hangs if the server is frozen: mysql2's
   * waits for the server to close its side, mariadb's connects again to send a KILL.
   */
  cut(): void;
}

export function createConnection(raw: RawConnection): DriverConnection {
  /** Statements without an answer. Some drivers never settle them after a cut. */
  const waiting = new Set<(error: unknown) => void>();

  return {
    end: raw.end,
    onLost: raw.onLost,
    async query(text, params, timeoutMs) {
      let timer: NodeJS.Timeout | undefined;
      let fail = (_error: unknown): void => undefined;
      const unanswered = new Promise<never>((_resolve, reject) => {
        fail = reject;
        waiting.add(fail);
        timer = setTimeout(() => reject(timedOut(timeoutMs)), timeoutMs);
      });
      try {
        return await Promise.race([raw.query(text, params), unanswered]);
      } finally {
        clearTimeout(timer);
        waiting.delete(fail);
      }
    },
    destroy() {
      raw.cut();
      for (const fail of waiting) fail(new DatabaseUnavailableError("the connection was cut before an answer came"));
    },
  };
}

function timedOut(timeoutMs: number): Error {
  return Object.assign(new Error(`no answer from the server within ${timeoutMs} ms`), { code: "ETIMEDOUT" });
}

/** Waits for a connection to open; the signal cuts it. */
export async function untilOpen<Connection>(
  signal: AbortSignal | undefined,
  opening: Promise<Connection>,
  cut: () => void,
): Promise<Connection> {
  const stopFollowing = onAbort(signal, cut);
  try {
    return await opening;
  } finally {
    stopFollowing();
  }
}

/** With an error the drivers reject pending statements and stop their timers. */
export function cutError(): Error {
  return Object.assign(new Error("rowpost cut the connection"), { code: "ECONNABORTED", fatal: true });
}
