/**
 * A pooler in transaction mode (PgBouncer and others) runs each transaction on any free server
 * connection. Our sessions would lose settings, prepared statements and locks, or leave them to the
 * application.
 */
import { ConfigurationError } from "../../runtime/errors.ts";
import { type Driver, end, type PgClient, type PgQuery, type PgResult } from "./driver.ts";

/**
 * Looks at a pooler at most. It hands out the last returned connection first, so the first look
 * usually decides. Beside six busy clients of PgBouncer 1.18, 4,800 sessions took 0 to 8 further
 * looks, and three of them 14 or 17. After all looks have passed, this driver does not check again.
 */
const LOOKS = 100;

/** Drivers whose pooler was found to keep one connection per client. */
const keepingSessions = new WeakSet<Driver>();

/**
 * Throws `ConfigurationError` if this client's statements may reach different server connections.
 * Changes nothing on the server, so it runs before the first SET. One round trip without a pooler:
 * greeting and SQL name the same process id.
 */
export async function refuseSplitSession(
  driver: Driver,
  client: PgClient,
  answer: (client: PgClient, query: PgQuery) => Promise<PgResult>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const backendOf = async (of: PgClient): Promise<number> =>
    Number((await answer(of, { text: "SELECT pg_backend_pid() AS pid" })).rows[0]?.["pid"]);
  const ours = await backendOf(client);
  if (ours === client.processID || keepingSessions.has(driver)) return;
  const other = await driver.connect("watch", signal);
  try {
    for (let look = 0; look < LOOKS; look += 1) {
      // This transaction keeps its server connection: in transaction mode the one our client just
      // used, or else ours now gets a different one.
      await answer(other, { text: "BEGIN" });
      if ((await backendOf(other)) === ours || (await backendOf(client)) !== ours) throw splitSession(driver);
      await answer(other, { text: "ROLLBACK" });
    }
  } finally {
    await end(other);
  }
  keepingSessions.add(driver);
}

function splitSession(driver: Driver): ConfigurationError {
  return new ConfigurationError(
    `${driver.label} is a pooler in transaction mode, such as PgBouncer: one session's statements reach several connections of the server. ` +
      "The relay and the tools need sessions of their own: give them the address of the server itself, or of a pooler in session mode, " +
      'as in createRelay({ database: postgres({ url: "postgres://user@server:5432/database" }) }). ' +
      "outbox.enqueue and outbox.transaction may go through this pooler.",
  );
}
