/**
 * MySQL and MariaDB: the server counts statements (`Questions`), and CPU time is that of its
 * process.
 */
import { type Connection, createConnection, type ResultSetHeader, type RowDataPacket } from "mysql2/promise";
import { processListeningOn, readProcess, readProcesses } from "../measure/processes.ts";
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

export async function openMysql(url: URL, suffix: string): Promise<BenchDatabase> {
  const name = temporaryName(suffix);
  const control = await createConnection(settings(url, undefined));
  const version = String((await rowsOf(control, "SELECT VERSION() AS version"))[0]?.["version"]);
  await control.query(`DROP DATABASE IF EXISTS ${name}`);
  await control.query(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`);
  await control.query(`USE ${name}`);
  const product = /mariadb/i.test(version) ? "mariadb" : "mysql";
  const serverPid = processOf(url);
  const ownUrl = new URL(url);
  ownUrl.pathname = `/${name}`;

  return {
    product,
    version: version.replace(/-.*/, ""),
    url: ownUrl.href.replace(/^mariadb:/, "mysql:"),
    countsControl: true,
    placeholder: () => "?",
    connect: async (as) => bareConnection(await createConnection(settings(url, name)), as),
    async script(text) {
      await control.query(text);
    },
    number: async (text) => Number(Object.values((await rowsOf(control, text))[0] ?? {})[0]),
    load: (request) => load(control, request),
    async clear() {
      await control.query("TRUNCATE TABLE local_message");
    },
    async tidy() {
      await control.query("ANALYZE TABLE local_message");
      await purged(control);
    },
    async drop() {
      await control.query(`DROP DATABASE IF EXISTS ${name}`);
      await control.end();
    },
    serverCpuMs: () => (serverPid === undefined ? undefined : readProcess(serverPid)?.ownMs),
    // All clients' statements: on a shared server the figure is an upper bound.
    statements: async () => Number((await rowsOf(control, "SHOW GLOBAL STATUS LIKE 'Questions'"))[0]?.["Value"]),
  };
}

function settings(url: URL, database: string | undefined): Parameters<typeof createConnection>[0] & object {
  return {
    host: url.hostname,
    port: Number(url.port || 3306),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    charset: "utf8mb4",
    timezone: "Z",
    supportBigNumbers: true,
    bigNumberStrings: true,
    dateStrings: true,
    ...(database === undefined ? { multipleStatements: true } : { database }),
  };
}

async function bareConnection(connection: Connection, as: "relay" | "program"): Promise<BareConnection> {
  if (as === "relay") await relaySettings(connection);
  return {
    async run({ text, params }) {
      // The driver's prepared statement; the library's builders make numbers, texts and nulls as
      // parameters.
      const [answer] = await connection.execute<RowDataPacket[] | ResultSetHeader>(
        text,
        params as (string | number | null)[],
      );
      return Array.isArray(answer) ? { rows: answer, affected: 0 } : { rows: [], affected: answer.affectedRows };
    },
    async simple(text) {
      await connection.query(text);
    },
    close: () => connection.end(),
  };
}

async function relaySettings(connection: Connection): Promise<void> {
  await connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  await connection.query("SET time_zone = '+00:00'");
}

async function rowsOf(connection: Connection, text: string): Promise<RowDataPacket[]> {
  const [rows] = await connection.query<RowDataPacket[]>(text);
  return rows;
}

/**
 * The process behind the port; if other users' sockets are not visible, the only process with a
 * server's name.
 */
function processOf(url: URL): number | undefined {
  const listening = processListeningOn(Number(url.port || 3306));
  if (listening !== undefined) return listening;
  const named = readProcesses().filter(({ name }) => /^(mariadbd|mysqld)$/.test(name));
  return named.length === 1 ? named[0]?.pid : undefined;
}

const FINISHED = {
  state: "2",
  delivery_count: "1",
  lock_version: "2",
  message_id: "LPAD(HEX(n), 32, '0')",
  last_retry_at: "UTC_TIMESTAMP(3)",
  sent_at: "UTC_TIMESTAMP(3)",
};

/** One row a second, as SQL; the row of the number `last` is of now. */
const createdAt = (last: number): string => `UTC_TIMESTAMP(3) - INTERVAL (${last} - n) SECOND`;

/** Values by column, as SQL over the number `n`, in addition to those of all kinds. */
const VALUES: Readonly<Record<RowKind, Readonly<Record<string, string>>>> = {
  waiting: {},
  finished: FINISHED,
  history: {
    ...FINISHED,
    state: "IF(n % 400 = 0, 3, 2)",
    fail_reason: "IF(n % 400 = 0, 'ECONNREFUSED: the endpoint is away', NULL)",
  },
  delayed: {
    deliver_at: "UTC_TIMESTAMP(3) + INTERVAL 1 HOUR",
    next_retry_at: "UTC_TIMESTAMP(3) + INTERVAL 1 HOUR",
  },
  failed: {
    state: "3",
    retry_count: "10",
    delivery_count: "10",
    lock_version: "20",
    fail_reason: "'ECONNREFUSED: connect ECONNREFUSED 127.0.0.1:8081'",
    last_retry_at: "UTC_TIMESTAMP(3)",
    next_retry_at: "UTC_TIMESTAMP(3) + INTERVAL 1 HOUR",
  },
};

async function load(control: Connection, request: LoadRequest): Promise<void> {
  const extra = { ...VALUES[request.kind], ...optionalValues(request, createdAt) };
  const bodyBytes = request.bodyBytes ?? BODY_BYTES;
  const columns = ["message_type", "message_key", "topic", "message_body", ...Object.keys(extra)].join(", ");
  const head = `CONCAT('{"orderId":', n, ',"note":"')`;
  const values = [
    "'order.created'",
    "CONCAT('m', LPAD(n, 9, '0'))",
    `'${request.topic ?? "orders"}'`,
    `CONCAT(RPAD(${head}, ${bodyBytes - 2}, 'x'), '"}')`,
    ...Object.values(extra),
  ].join(", ");
  // MySQL and MariaDB limit a recursion to 1,000 steps, with different names of the setting.
  const limit = (
    await rowsOf(
      control,
      "SHOW VARIABLES WHERE Variable_name IN ('cte_max_recursion_depth', 'max_recursive_iterations')",
    )
  )[0];
  await control.query(`SET SESSION ${String(limit?.["Variable_name"])} = 1000000, time_zone = '+00:00'`);
  if (request.oneTransaction) await control.query("START TRANSACTION");
  for (const { first, count } of loadSteps(request)) {
    await control.query(
      `INSERT INTO local_message (${columns})
       WITH RECURSIVE numbers (n) AS (SELECT ${first} UNION ALL SELECT n + 1 FROM numbers WHERE n < ${first + count - 1})
       SELECT ${values} FROM numbers`,
    );
  }
  if (request.oneTransaction) await control.query("COMMIT");
}

/**
 * Waits until the purge threads have removed the last run's old row versions, which would slow down
 * the next run.
 */
async function purged(control: Connection): Promise<void> {
  const end = performance.now() + 5_000;
  while (performance.now() < end) {
    const [status] = await rowsOf(
      control,
      "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'",
    );
    if (!(Number(status?.["COUNT"]) > 200)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
