/**
 * A mysql2 pool of a server in another time zone. `SET GLOBAL time_zone` on a server that others use too would change their answers, so each
 * connection puts the zone where a statement reads the server's: a session sees no difference.
 */
import { type Connection, type ConnectionOptions, createConnection } from "mysql2";

const SERVER_ZONE = "@@global.time_zone";

/** What `mysql({ pool })` asks of a pool whose settings it cannot read. */
export interface ZonedPool {
  getConnection(callback: (error: unknown, connection: unknown) => void): void;
  query(): never;
  execute(): never;
  end(callback: () => void): void;
  /** Cuts every connection that was lent. */
  destroy(): void;
  /** How often a statement asked for the server's zone: 0 would mean that the zone has no part in the test. */
  readonly asked: number;
}

/** Opens nothing before the first connection is asked for. */
export function createZonedPool(url: string, zone: string): ZonedPool {
  const lent: Connection[] = [];
  let asked = 0;

  function inZone(text: string): string {
    if (!text.includes(SERVER_ZONE)) return text;
    asked += 1;
    return text.replaceAll(SERVER_ZONE, `'${zone}'`);
  }

  function open(callback: (error: unknown, connection: unknown) => void): void {
    const { hostname, port, username, pathname } = new URL(url);
    const options: ConnectionOptions = {
      ...{ host: hostname, port: Number(port), user: username, database: pathname.slice(1), charset: "utf8mb4" },
      ...{ supportBigNumbers: true, bigNumberStrings: true, dateStrings: true, jsonStrings: true },
      flags: ["FOUND_ROWS"],
    };
    const connection = createConnection(options);
    lent.push(connection);
    connection.once("error", (error) => callback(error, undefined));
    connection.once("connect", () => {
      connection.on("error", () => undefined);
      // Every session of such a server begins in its zone; rowpost sets its own sessions after that.
      connection.query(`SET time_zone = '${zone}'`, (error) => callback(error, patch(connection)));
    });
  }

  function patch(connection: Connection): Connection {
    for (const name of ["query", "execute"] as const) {
      const original = (connection[name] as (...values: unknown[]) => unknown).bind(connection);
      const patched = (first: unknown, ...rest: unknown[]): unknown =>
        original(
          typeof first === "string"
            ? inZone(first)
            : { ...(first as { sql: string }), sql: inZone((first as { sql: string }).sql) },
          ...rest,
        );
      Object.defineProperty(connection, name, { value: patched });
    }
    return connection;
  }

  const refuse = (): never => {
    throw new Error("take a connection");
  };
  return {
    getConnection: open,
    query: refuse,
    execute: refuse,
    end: (callback) => callback(),
    destroy() {
      for (const connection of lent) connection.destroy();
    },
    get asked() {
      return asked;
    },
  };
}
