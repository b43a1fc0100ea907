/**
 * A mysql2 pool of a test's own: it sees every statement on its way to the server, and decides for
 * each connection which way it goes. rowpost takes its sessions from a pool whose settings it
 * cannot read.
 */
import { type Connection, type ConnectionOptions, createConnection } from "mysql2";

export interface LendingPoolOptions {
  /** Address of the next connection. */
  readonly address: () => string;
  /** Sees each statement just before it is sent; what it returns is sent. */
  readonly onStatement: (text: string) => string;
  /** Run on each connection first. */
  readonly begin?: string | undefined;
}

/** What `mysql({ pool })` asks of a pool. */
export interface LendingPool {
  getConnection(callback: (error: unknown, connection: unknown) => void): void;
  query(): never;
  execute(): never;
  end(callback: () => void): void;
  /** Cuts every connection that was lent. */
  destroy(): void;
}

/** Opens nothing before the first connection is asked for. */
export function createLendingPool({ address, onStatement, begin }: LendingPoolOptions): LendingPool {
  const lent: Connection[] = [];

  function lend(callback: (error: unknown, connection: unknown) => void): void {
    const { hostname, port, username, pathname } = new URL(address());
    const options: ConnectionOptions = {
      host: hostname,
      port: Number(port),
      user: username,
      database: pathname.slice(1),
      charset: "utf8mb4",
      supportBigNumbers: true,
      bigNumberStrings: true,
      dateStrings: true,
      jsonStrings: true,
      flags: ["FOUND_ROWS"],
    };
    const connection = createConnection(options);
    lent.push(connection);
    let answered = false;
    const answer = (error: unknown): void => {
      if (answered) return;
      answered = true;
      callback(error, patch(connection));
    };
    connection.on("error", answer);
    connection.once("connect", () => {
      if (begin === undefined) answer(null);
      else connection.query(begin, answer);
    });
  }

  function patch(connection: Connection): Connection {
    for (const name of ["query", "execute"] as const) {
      const original = (connection[name] as (...values: unknown[]) => unknown).bind(connection);
      const patched = (first: string | { readonly sql: string }, ...rest: unknown[]): unknown =>
        typeof first === "string"
          ? original(onStatement(first), ...rest)
          : original({ ...first, sql: onStatement(first.sql) }, ...rest);
      Object.defineProperty(connection, name, { value: patched });
    }
    return connection;
  }

  function refuse(): never {
    throw new Error("this pool lends connections and runs nothing itself");
  }
  return {
    getConnection: lend,
    query: refuse,
    execute: refuse,
    end: (callback) => callback(),
    destroy() {
      for (const connection of lent) connection.destroy();
    },
  };
}
