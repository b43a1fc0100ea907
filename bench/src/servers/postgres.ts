/**
 * PostgreSQL: statements are counted at the driver (`pg_stat_statements` needs a server restart)
 * and checked against the server's count of transactions in this database, which can never be
 * larger. CPU time is that of the postmaster and all its children.
 */
import pg from "pg";
import { countCalls } from "../measure/count-calls.ts";
import { cpuOfFamilyMs, readProcess } from "../measure/processes.ts";
import {
  type BareConnection,
  type BenchDatabase,
  BODY_BYTES,
  type LoadRequest,
  loadSteps,
  optionalValues,
  type RowKind,
  temporaryName,
} from "./server.ts";

/** Clients whose statements are not the measured program's. */
const uncounted = new WeakSet<object>();
let counted = 0;

/** To be called in the relay's process, before its first connection. */
export function countPostgresStatements(): () => number {
  if (!counting) {
    counting = true;
    countCalls(pg.Client.prototype, "query", (client) => {
      if (!uncounted.has(client as object)) counted += 1;
    });
  }
  return () => counted;
}
let counting = false;

export async function openPostgres(url: URL, suffix: string): Promise<BenchDatabase> {
  const name = temporaryName(suffix);
  const statements = countPostgresStatements();
  const maintenanceUrl = new URL(url);
  if (maintenanceUrl.pathname.length < 2) maintenanceUrl.pathname = "/postgres";
  const maintenance = await controlClient(maintenanceUrl);
  await maintenance.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  await maintenance.query(`CREATE DATABASE ${name}`);
  const ownUrl = new URL(url);
  ownUrl.pathname = `/${name}`;
  const control = await controlClient(ownUrl);
  const postmaster = await postmasterOf(control);
  const version = String((await control.query("SHOW server_version")).rows[0]?.server_version).split(" ")[0] ?? "";
  const number = async (text: string): Promise<number> =>
    Number(Object.values((await control.query(text)).rows[0] ?? {})[0]);

  return {
    product: "postgres",
    version,
    url: ownUrl.href,
    countsControl: false,
    placeholder: (position) => `$${position}`,
    connect: (as) => bareConnection(ownUrl, as),
    async script(text) {
      await control.query(text);
    },
    number,
    load: (request) => load(control, request),
    async clear() {
      await control.query("TRUNCATE local_message RESTART IDENTITY");
    },
    async tidy() {
      await control.query("VACUUM ANALYZE local_message");
      await control.query("CHECKPOINT");
    },
    async drop() {
      await control.end();
      await maintenance.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await maintenance.end();
    },
    serverCpuMs: () => (postmaster === undefined ? undefined : cpuOfFamilyMs(postmaster)),
    statements: async () => statements(),
  };
}

async function controlClient(url: URL): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url.href });
  uncounted.add(client);
  await client.connect();
  return client;
}

async function bareConnection(url: URL, as: "relay" | "program"): Promise<BareConnection> {
  const client = new pg.Client({ connectionString: url.href });
  await client.connect();
  if (as === "relay") {
    // Statistics of a just filled table must not decide the plan.
    await client.query(
      "SET enable_seqscan = off; SET enable_bitmapscan = off; SET max_parallel_workers_per_gather = 0; SET jit = off",
    );
  }
  const names = new Map<string, string>();
  return {
    async run({ text, params }) {
      // A program's statements are unnamed, as required behind a connection pooler.
      if (as === "program") {
        const { rows, rowCount } = await client.query({ text, values: [...params] });
        return { rows, affected: rowCount ?? 0 };
      }
      let name = names.get(text);
      if (name === undefined) {
        name = `bare_${names.size}`;
        names.set(text, name);
      }
      const { rows, rowCount } = await client.query({ name, text, values: [...params] });
      return { rows, affected: rowCount ?? 0 };
    },
    async simple(text) {
      await client.query(text);
    },
    close: () => client.end(),
  };
}

/** Parent of our server process; undefined if it is not on this machine. */
async function postmasterOf(client: pg.Client): Promise<number | undefined> {
  const pid = Number((await client.query("SELECT pg_backend_pid() AS pid")).rows[0]?.pid);
  const backend = readProcess(pid);
  return backend?.name === "postgres" ? backend.parent : undefined;
}

const FINISHED = {
  state: "2",
  delivery_count: "1",
  lock_version: "2",
  message_id: "lpad(to_hex(n), 32, '0')",
  last_retry_at: "now()",
  sent_at: "now()",
};

/** One row a second, as SQL; the row of the number `last` is of now. */
const createdAt = (last: number): string => `now() - (${last} - n) * interval '1 second'`;

/** Values by column, as SQL over the number `n`, in addition to those of all kinds. */
const VALUES: Readonly<Record<RowKind, Readonly<Record<string, string>>>> = {
  waiting: {},
  finished: FINISHED,
  history: {
    ...FINISHED,
    state: "CASE WHEN n % 400 = 0 THEN 3 ELSE 2 END",
    fail_reason: "CASE WHEN n % 400 = 0 THEN 'ECONNREFUSED: the endpoint is away' END",
  },
  delayed: { deliver_at: "now() + interval '1 hour'", next_retry_at: "now() + interval '1 hour'" },
  failed: {
    state: "3",
    retry_count: "10",
    delivery_count: "10",
    lock_version: "20",
    fail_reason: "'ECONNREFUSED: connect ECONNREFUSED 127.0.0.1:8081'",
    last_retry_at: "now()",
    next_retry_at: "now() + interval '1 hour'",
  },
};

async function load(control: pg.Client, request: LoadRequest): Promise<void> {
  const extra = { ...VALUES[request.kind], ...optionalValues(request, createdAt) };
  const bodyBytes = request.bodyBytes ?? BODY_BYTES;
  const columns = ["message_type", "message_key", "topic", "message_body", ...Object.keys(extra)].join(", ");
  const values = [
    "'order.created'",
    "'m' || lpad(n::text, 9, '0')",
    `'${request.topic ?? "orders"}'`,
    `rpad('{"orderId":' || n || ',"note":"', ${bodyBytes - 2}, 'x') || '"}'`,
    ...Object.values(extra),
  ].join(", ");
  if (request.oneTransaction) await control.query("BEGIN");
  for (const { first, count } of loadSteps(request)) {
    await control.query(
      `INSERT INTO local_message (${columns}) SELECT ${values} FROM generate_series(${first}, ${first + count - 1}) AS n`,
    );
  }
  if (request.oneTransaction) await control.query("ANALYZE local_message; COMMIT");
}
