/**
 * A pooler in transaction mode (PgBouncer and its like) runs each transaction of one client on
 * whichever connection of the server is free. A session of ours would lose its settings, prepared
 * statements and locks there, and leave them on the connections of the application.
 */
import { ConfigurationError } from "../../runtime/errors.ts";
import { type Driver, end, type PgClient, type PgQuery, type PgResult } from "./driver.ts";

/**
 * Looks at a pooler. It hands out first what was given back last, so the first one mostly tells,
 * unless another client was faster. Beside six busy clients of PgBouncer 1.18, 4,800 sessions took
 * 0 to 8 looks more, and three of them 14 or 17. Once all looks have passed, no session of this
 * driver asks again.
 */
const LOOKS = 100;

/** Drivers behind a pooler that was seen to keep a connection for each client. */
const keepingSessions = new WeakSet<Driver>();

/**
 * Throws `ConfigurationError` when statements of this client do not all reach one connection of the
 * server. Changes nothing there, so it comes before the first SET. One round trip where no pooler
 * is: the server then says the same process id in its greeting and in SQL.
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
      // Its transaction keeps the connection that it got. In transaction mode that is the one that
      // ours has just been on; if somebody else took that one, ours gets another now.
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
