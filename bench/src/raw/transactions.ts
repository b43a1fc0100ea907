import type { BareConnection, BenchDatabase } from "../servers/server.ts";

export const PROGRAM_CONNECTIONS = 8;

/** Transactions 0, 8, 16, … on the first connection, and so on. */
export async function spread(
  transactions: number,
  work: (connection: number, transaction: number) => Promise<void>,
): Promise<void> {
  const loops = Array.from({ length: PROGRAM_CONNECTIONS }, async (_, connection) => {
    for (let transaction = connection; transaction < transactions; transaction += PROGRAM_CONNECTIONS) {
      await work(connection, transaction);
    }
  });
  await Promise.all(loops);
}

export interface RawConnections {
  /** BEGIN, work, COMMIT on the connection of this number. */
  transaction(connection: number, work: (connection: BareConnection) => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

/** SQLite has one writer: transactions take turns on one handle. */
export async function openRawConnections(database: BenchDatabase): Promise<RawConnections> {
  const isSqlite = database.product === "sqlite";
  const count = isSqlite ? 1 : PROGRAM_CONNECTIONS;
  const connections = await Promise.all(Array.from({ length: count }, () => database.connect("program")));
  const takeTurn = turns();
  return {
    async transaction(number, work) {
      const connection = connections[number % count];
      if (connection === undefined) throw new Error("there is no connection");
      const transact = async (): Promise<void> => {
        await connection.simple(isSqlite ? "BEGIN IMMEDIATE" : "BEGIN");
        await work(connection);
        await connection.simple("COMMIT");
      };
      await (isSqlite ? takeTurn(transact) : transact());
    },
    close: async () => {
      await Promise.all(connections.map((connection) => connection.close()));
    },
  };
}

function turns(): (work: () => Promise<void>) => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  return (work) => {
    last = last.then(work);
    return last;
  };
}
