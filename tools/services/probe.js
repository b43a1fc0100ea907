#!/usr/bin/env node
/**
 * Which of the servers that the tests use are there? The one place that knows their names,
 * environment variables, default addresses and how to tell that the right one answers: a login as
 * the tests do it, then its version, not just an open port.
 *
 *   node tools/services/probe.js [NAME...]   ask each, or all
 *   node tools/services/probe.js --names     print the names, ask nobody
 *
 * prints one line for each: name, `present` or `absent`, variable, address, version or reason, with
 * tabs between. Exit status: 0 all are present, 1 some are not, 2 an unknown name.
 *
 * The drivers are the workspace's own, loaded when needed, so this works after `npm ci` only.
 */
import { connect as connectHttp2 } from "node:http2";
import { connect as connectTcp } from "node:net";
import { argv, env, exit, stderr, stdout } from "node:process";
import { fileURLToPath } from "node:url";

/**
 * Long enough for a login on a machine whose cores are all busy; what nothing listens on is refused
 * at once.
 */
const timeoutMs = 3000;

/** @type {typeof import("./probe.js").services} */
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
  pgbouncer: {
    variable: "ROWPOST_TEST_PGBOUNCER",
    defaultAddress: "postgres://postgres@127.0.0.1:6432/postgres",
    expects: /^PgBouncer /,
    version: pgbouncerVersion,
  },
  rocketmq: {
    variable: "ROWPOST_TEST_ROCKETMQ",
    defaultAddress: "rocketmq://127.0.0.1:8081",
    expects: /^RocketMQ/,
    version: rocketmqVersion,
  },
  rocketmq4: {
    variable: "ROWPOST_TEST_ROCKETMQ4",
    defaultAddress: "rocketmq-classic://127.0.0.1:9976",
    expects: /^RocketMQ 4\.9/,
    version: rocketmqClassicVersion,
  },
  kafka: {
    variable: "ROWPOST_TEST_KAFKA",
    defaultAddress: "kafka://127.0.0.1:9092",
    expects: /^Kafka/,
    version: kafkaVersion,
  },
  rabbitmq: {
    variable: "ROWPOST_TEST_RABBITMQ",
    defaultAddress: "amqp://guest:guest@127.0.0.1:5672",
    expects: /^RabbitMQ (3\.(8|9|\d\d)|[4-9])\./,
    version: rabbitmqVersion,
  },
  redis: {
    variable: "ROWPOST_TEST_REDIS",
    defaultAddress: "redis://127.0.0.1:6379",
    expects: /^(Redis|Valkey) /,
    version: redisVersion,
  },
  nats: {
    variable: "ROWPOST_TEST_NATS",
    defaultAddress: "nats://127.0.0.1:4222",
    expects: /^NATS .* with JetStream$/,
    version: natsVersion,
  },
  mosquitto: {
    variable: "ROWPOST_TEST_MOSQUITTO",
    defaultAddress: "mqtt://127.0.0.1:1883",
    expects: /^MQTT 5/,
    version: mqttVersion,
  },
  elasticmq: {
    variable: "ROWPOST_TEST_ELASTICMQ",
    defaultAddress: "sqs://127.0.0.1:9324",
    expects: /^SQS/,
    version: sqsVersion,
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
  // The error of a refused connection to several addresses has an empty message and its parts in
  // `errors`. Node's HTTP/2 client hides it in the cause of a canceled stream.
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
  return `PostgreSQL ${(await askPostgres(url, "SHOW server_version")).server_version}`;
}

/**
 * Of its console, once PostgreSQL has answered through it.
 * @param {URL} url
 */
async function pgbouncerVersion(url) {
  await askPostgres(url, "SELECT 1");
  return (await askPostgres(Object.assign(url, { pathname: "/pgbouncer" }), "SHOW VERSION")).version;
}

/**
 * The first row of the answer.
 * @param {URL} url
 * @param {string} question
 */
async function askPostgres(url, question) {
  const { default: pg } = await import("pg");
  const client = new pg.Client({
    connectionString: url.href,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    return (await client.query(question)).rows[0];
  } finally {
    await client.end().catch(() => {});
  }
}

/**
 * RocketMQ's gRPC proxy tells no version. It answers an empty QueryRoute in gRPC's form, where
 * another gRPC server says UNIMPLEMENTED (12) and another HTTP server no grpc-status at all. The
 * five zero bytes are gRPC's frame around an empty message.
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

/**
 * RocketMQ's name server, once it knows a primary broker, which tests cannot do without. Each
 * answer has the number of the server's version: 4.9.0 is 393, and 5.0.0 is 413.
 * @param {URL} url
 */
async function rocketmqClassicVersion(url) {
  const header = JSON.stringify({ code: 106, language: "OTHER", version: 0, opaque: 1, flag: 0 });
  const request = Buffer.alloc(8 + header.length);
  request.writeUInt32BE(4 + header.length, 0);
  request.writeUInt32BE(header.length, 4);
  request.write(header, 8);
  const socket = connectTcp({ host: url.hostname, port: Number(url.port || 9876) });
  try {
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error("no answer in time"))).write(request);
    let answer = Buffer.alloc(0);
    for await (const chunk of socket) {
      answer = Buffer.concat([answer, chunk]);
      if (answer.length < 8 || answer.length < 4 + answer.readUInt32BE(0)) continue;
      const end = 8 + (answer.readUInt32BE(4) & 0xff_ff_ff);
      const { code, version } = JSON.parse(answer.toString("utf8", 8, end));
      if (code !== 0) throw new Error("a RocketMQ that is no name server answers");
      if (!answer.toString("utf8", end).includes('"brokerName"')) throw new Error("no broker has registered yet");
      return version >= 413 ? "RocketMQ 5" : version >= 393 ? "RocketMQ 4.9" : "an older RocketMQ";
    }
    throw new Error("the connection was closed without an answer");
  } finally {
    socket.destroy();
  }
}

/**
 * Redis' protocol takes a command as a line of words, so that no driver is needed.
 * @param {URL} url
 */
async function redisVersion(url) {
  const socket = connectTcp(Number(url.port || 6379), url.hostname);
  socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no answer within ${timeoutMs} ms`)));
  const [user, password] = [url.username, url.password].map(decodeURIComponent);
  if (password) socket.write(`AUTH ${user ? `${user} ` : ""}${password}\r\n`);
  socket.write("INFO server\r\n");
  let answer = "";
  for await (const chunk of socket.setEncoding("utf8")) {
    answer += chunk;
    const refused = /^-(.*)\r\n/m.exec(answer);
    if (refused) throw new Error(refused[1]);
    const version = /^(redis|valkey)_version:(\S+)\r\n/m.exec(answer);
    // Valkey names a version of Redis too, behind its own.
    if (version) return `${/^server_name:valkey/m.test(answer) ? "Valkey" : "Redis"} ${version[2]}`;
  }
  throw new Error("what answers is no Redis");
}

/**
 * Kafka tells no version either. It answers ApiVersions (18, in version 0) in a frame of its own:
 * length, our number, no error, a list. What else listens there answers otherwise, or never.
 * @param {URL} url
 */
async function kafkaVersion(url) {
  const clientId = "rowpost-probe";
  const request = Buffer.alloc(14 + clientId.length);
  request.writeInt32BE(request.length - 4, 0);
  request.writeInt16BE(18, 4);
  request.writeInt32BE(CORRELATION, 8);
  request.writeInt16BE(clientId.length, 12);
  request.write(clientId, 14);
  const socket = connectTcp(Number(url.port || 9092), url.hostname);
  socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no answer within ${timeoutMs} ms`)));
  try {
    socket.write(request);
    let answer = Buffer.alloc(0);
    for await (const chunk of socket) {
      answer = Buffer.concat([answer, chunk]);
      if (answer.length < 14) continue;
      const isKafka =
        answer.readInt32BE(4) === CORRELATION && answer.readInt16BE(8) === 0 && answer.readInt32BE(10) > 0;
      return isKafka ? "Kafka" : "a server that is not Kafka";
    }
    throw new Error("the connection was closed without an answer");
  } finally {
    socket.destroy();
  }
}

const CORRELATION = 0x72_6f_77_70;

/**
 * AMQP 0-9-1 by hand, up to the login: the server begins with its product and version, and goes on
 * only when user and password are right.
 * @param {URL} url
 */
async function rabbitmqVersion(url) {
  const socket = connectTcp({ host: url.hostname, port: Number(url.port || 5672) });
  socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no answer within ${timeoutMs} ms`)));
  const [user, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
  try {
    socket.write(Buffer.from("AMQP\0\0\x09\x01", "latin1"));
    let received = Buffer.alloc(0);
    let version = "";
    for await (const chunk of socket) {
      received = Buffer.concat([received, /** @type {Buffer} */ (chunk)]);
      // A frame: type, channel, size; then class (10) and method of the connection; its last byte
      // is 0xCE.
      while (received.length >= 7 && received.length >= received.readUInt32BE(3) + 8) {
        const size = received.readUInt32BE(3);
        const [method, fields] = [received.readUInt16BE(9), received.toString("latin1", 11, size + 7)];
        received = received.subarray(size + 8);
        if (method === 10) {
          version = `${tableText(fields, "product")} ${tableText(fields, "version")}`;
          socket.write(loginFrame(`\0${user}\0${password}`));
        } else if (method === 30) return version;
        else throw new Error(`${version} refuses the login: ${fields.slice(3).replace(/[^ -~]/g, "")}`);
      }
    }
    throw new Error("what answers does not speak AMQP 0-9-1");
  } finally {
    socket.destroy();
  }
}

/**
 * NATS begins with one line of JSON about itself, and answers a ping once it has accepted the
 * connection.
 * @param {URL} url
 */
async function natsVersion(url) {
  const socket = connectTcp({ host: url.hostname, port: Number(url.port || 4222) });
  try {
    return await new Promise((resolve, reject) => {
      let text = "";
      socket.setTimeout(timeoutMs, () => reject(new Error(`no answer within ${timeoutMs} ms`)));
      socket.once("error", reject);
      socket.once("close", () => reject(new Error(text.split("\r\n").at(-2) || "the connection was closed")));
      socket.once("data", () => socket.write('CONNECT {"verbose":false}\r\nPING\r\n'));
      socket.on("data", (chunk) => {
        text += chunk.toString();
        const info = /^INFO (.*)\r\n(?:.*\r\n)*PONG\r\n/.exec(text)?.[1];
        if (info === undefined) return;
        const { version, jetstream } = JSON.parse(info);
        resolve(`NATS ${version} ${jetstream === true ? "with" : "without"} JetStream`);
      });
    });
  } finally {
    socket.destroy();
  }
}

/**
 * CONNECT of MQTT 5 without a login. The server's CONNACK (0x20) says with 0 that it agrees; one
 * that is older refuses the version, or hangs up.
 * @param {URL} url
 */
async function mqttVersion(url) {
  const socket = connectTcp({ host: url.hostname, port: Number(url.port || 1883) });
  socket.setTimeout(timeoutMs, () => socket.destroy(new Error(`no answer within ${timeoutMs} ms`)));
  try {
    // Length 13: the protocol's name and version, a clean start, 10 s to keep alive, no properties,
    // no client identifier.
    socket.write(Buffer.from("\x10\x0d\0\x04MQTT\x05\x02\0\x0a\0\0\0", "latin1"));
    for await (const chunk of socket) {
      if (chunk[0] !== 0x20) throw new Error("what answers is no MQTT server");
      if (chunk[3] !== 0) throw new Error(`the server refuses MQTT 5 without a login, reason ${chunk[3]}`);
      return "MQTT 5";
    }
    throw new Error("the connection was closed without an answer");
  } finally {
    socket.destroy();
  }
}

/**
 * ListQueues in the JSON form of the protocol. ElasticMQ looks at no signature.
 * @param {URL} url
 */
async function sqsVersion(url) {
  const answer = await fetch(`http://${url.host}`, {
    method: "POST",
    headers: { "content-type": "application/x-amz-json-1.0", "x-amz-target": "AmazonSQS.ListQueues" },
    body: "{}",
    signal: AbortSignal.timeout(timeoutMs),
  });
  const text = await answer.text();
  if (answer.status === 200 && text.startsWith("{")) return "SQS (JSON protocol)";
  throw new Error(`a server that is no SQS answers ${answer.status}`);
}

/**
 * A text of a table of AMQP: its name, an S, four bytes of length, its value.
 * @param {string} table
 * @param {string} name
 */
function tableText(table, name) {
  const at = table.indexOf(`${String.fromCharCode(name.length)}${name}S`) + name.length + 2;
  return table.slice(at + 4, at + 4 + Buffer.from(table.slice(at, at + 4), "latin1").readUInt32BE(0));
}

/**
 * connection.start-ok: what we can do (hear that a login failed, else the server just goes silent),
 * the mechanism, its response, a locale.
 * @param {string} account
 */
function loginFrame(account) {
  const response = Buffer.from(account);
  const fields = Buffer.concat([
    Buffer.from("\0\x0a\0\x0b\0\0\0\x31\x0ccapabilitiesF\0\0\0\x1f\x1cauthentication_failure_closet\x01", "latin1"),
    Buffer.from("\x05PLAIN"),
    uint32(response.length),
    response,
    Buffer.from("\x05en_US", "latin1"),
  ]);
  return Buffer.concat([Buffer.from([1, 0, 0]), uint32(fields.length), fields, Buffer.from([0xce])]);
}

/** @param {number} value */
function uint32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** @param {string[]} names */
async function main(names) {
  if (names.length === 1 && names[0] === "--names") {
    stdout.write(`${Object.keys(services).join("\n")}\n`);
    return 0;
  }
  const unknown = names.filter((name) => !Object.hasOwn(services, name));
  if (unknown.length > 0) {
    stderr.write(`probe: unknown service ${unknown.join(", ")}; there are ${Object.keys(services).join(", ")}\n`);
    return 2;
  }
  const wanted = names.length > 0 ? names : Object.keys(services);
  const found = await Promise.all(wanted.map((name) => probe(name)));
  for (const { name, present, variable, address, detail } of found) {
    stdout.write(`${[name, present ? "present" : "absent", variable, address, detail].join("\t")}\n`);
  }
  return found.every(({ present }) => present) ? 0 : 1;
}

// exit(), because a driver's socket that hangs must not keep the caller waiting.
if (argv[1] && fileURLToPath(import.meta.url) === argv[1]) exit(await main(argv.slice(2)));
