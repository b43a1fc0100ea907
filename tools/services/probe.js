#!/usr/bin/env node
/**
 * Which of the servers that the tests use are there? The one place that knows their names, environment variables, default addresses
 * and how to tell that the right one answers: a login as the tests do it, then its version, not just an open port.
 *
 *   node tools/services/probe.js [NAME...]
 *
 * prints one line for each (all five without names): name, `present` or `absent`, variable, address, version or reason, with tabs between.
 * Exit status: 0 all are present, 1 some are not, 2 an unknown name.
 *
 * The drivers are the workspace's own, loaded when needed, so this works after `npm ci` only.
 */
import { connect as connectHttp2 } from "node:http2";
import { argv, env, exit, stderr, stdout } from "node:process";
import { fileURLToPath } from "node:url";

/** Long enough for a login on a machine whose cores are all busy; what nothing listens on is refused at once. */
const timeoutMs = 3000;

/** @type {import("./probe.js").ServiceTable} */
export const services = {
  mariadb: {
    variable: "ROWPOST_TEST_MARIADB",
    defaultAddress: "mariadb://root@127.0.0.1:3306",
    expects: /MariaDB/,
    version: mysqlVersion,
  },
  mysql9: {
    variable: "ROWPOST_TEST_MYSQL9",
    defaultAddress: "mysql://root@127.0.0.1:3307",
    expects: /^MySQL 9\./,
    version: mysqlVersion,
  },
  mysql8: {
    variable: "ROWPOST_TEST_MYSQL8",
    defaultAddress: "mysql://root@127.0.0.1:3308",
    expects: /^MySQL 8\./,
    version: mysqlVersion,
  },
  postgres: {
    variable: "ROWPOST_TEST_POSTGRES",
    defaultAddress: "postgres://postgres@127.0.0.1:5432/postgres",
    expects: /^PostgreSQL /,
    version: postgresVersion,
  },
  rocketmq: {
    variable: "ROWPOST_TEST_ROCKETMQ",
    defaultAddress: "rocketmq://127.0.0.1:8081",
    expects: /^RocketMQ/,
    version: rocketmqVersion,
  },
};

/** @type {typeof import("./probe.js").addressOf} */
export function addressOf(name) {
  const { variable, defaultAddress } = services[name];
  return env[variable] || defaultAddress;
}

/** @type {typeof import("./probe.js").probe} */
export async function probe(name, address = addressOf(name)) {
  const { variable, expects, version } = services[name];
  const common = { name, variable, address };
  try {
    const detail = await version(new URL(address));
    return expects.test(detail)
      ? { ...common, present: true, detail }
      : { ...common, present: false, detail: `${detail} answers, wanted was ${expects.source}` };
  } catch (error) {
    return { ...common, present: false, detail: reasonOf(error) };
  }
}

/** @param {unknown} error */
function reasonOf(error) {
  if (!(error instanceof Error)) return String(error);
  if (/** @type {NodeJS.ErrnoException} */ (error).code === "ERR_MODULE_NOT_FOUND") {
    return `the driver is not installed, run npm ci (${error.message.split("\n")[0]})`;
  }
  // The error of a refused connection to several addresses has an empty message and its parts in `errors`.
  // Node's HTTP/2 client hides it in the cause of a canceled stream.
  const inner = error instanceof AggregateError ? error.errors[0] : error.cause instanceof Error ? error.cause : error;
  return `${inner.message || inner.code || inner.name}`.split("\n")[0] ?? "";
}

/** @param {URL} url */
async function mysqlVersion(url) {
  const { createConnection } = await import("mysql2/promise");
  const connection = await createConnection({
    host: url.hostname,
    port: Number(url.port || 3306),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    connectTimeout: timeoutMs,
  });
  // A connection that breaks later must not end the process.
  connection.on("error", () => {});
  try {
    const [rows] = await connection.query({ sql: "SELECT VERSION() AS version", timeout: timeoutMs });
    const version = String(/** @type {{ version: string }[]} */ (rows)[0]?.version);
    return version.includes("MariaDB") ? `MariaDB ${version.split("-MariaDB")[0]}` : `MySQL ${version}`;
  } finally {
    connection.destroy();
  }
}

/** @param {URL} url */
async function postgresVersion(url) {
  const { default: pg } = await import("pg");
  const client = new pg.Client({
    connectionString: url.href,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    const { rows } = await client.query("SHOW server_version");
    return `PostgreSQL ${rows[0].server_version}`;
  } finally {
    await client.end().catch(() => {});
  }
}

/**
 * RocketMQ's gRPC proxy tells no version. It answers an empty QueryRoute in gRPC's form, where another gRPC server says UNIMPLEMENTED (12) and
 * another HTTP server no grpc-status at all. The five zero bytes are gRPC's frame around an empty message.
 * @param {URL} url
 */
async function rocketmqVersion(url) {
  const session = connectHttp2(`http://${url.host}`);
  try {
    return await new Promise((resolve, reject) => {
      session.setTimeout(timeoutMs, () => reject(new Error(`no answer within ${timeoutMs} ms`)));
      session.once("error", reject);
      const stream = session.request({
        ":method": "POST",
        ":path": "/apache.rocketmq.v2.MessagingService/QueryRoute",
        "content-type": "application/grpc",
        te: "trailers",
        "x-mq-client-id": "rowpost-probe",
      });
      /** @param {import("node:http2").IncomingHttpHeaders} headers */
      const read = (headers) => {
        const status = headers["grpc-status"];
        if (status === "0" || (status !== undefined && status !== "12")) resolve("RocketMQ 5 (gRPC)");
        else if (status === "12") reject(new Error("a gRPC server that is not RocketMQ answers"));
      };
      stream.once("error", reject);
      stream.once("response", read);
      stream.once("trailers", read);
      stream.once("end", () => reject(new Error("an HTTP/2 server that is not RocketMQ answers")));
      stream.resume();
      stream.end(Buffer.alloc(5));
    });
  } finally {
    session.destroy();
  }
}

/** @param {string[]} names */
async function main(names) {
  const unknown = names.filter((name) => !Object.hasOwn(services, name));
  if (unknown.length > 0) {
    stderr.write(`probe: unknown service ${unknown.join(", ")}; there are ${Object.keys(services).join(", ")}\n`);
    return 2;
  }
  const wanted = /** @type {import("./probe.js").ServiceName[]} */ (names.length > 0 ? names : Object.keys(services));
  const found = await Promise.all(wanted.map((name) => probe(name)));
  for (const { name, present, variable, address, detail } of found) {
    stdout.write(`${[name, present ? "present" : "absent", variable, address, detail].join("\t")}\n`);
  }
  return found.every(({ present }) => present) ? 0 : 1;
}

// exit(), because a driver's socket that hangs must not keep the caller waiting.
if (argv[1] && fileURLToPath(import.meta.url) === argv[1]) exit(await main(argv.slice(2)));
