/**
 * Copied into the folder that oldest.mjs filled: each driver commits 20 messages and rolls one back
 * in transactions of the user's, and a relay publishes them with each broker's client. Every
 * message must end as `sent`, with its receipt, and none may have been `failed` on the way.
 *
 *   node round.mjs MARIADB MYSQL9 POSTGRES RABBITMQ REDIS NATS MOSQUITTO KAFKA ROCKETMQ
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect as connectNats } from "@nats-io/transport-node";
import amqplib from "amqplib";
import { Kafka, logLevel } from "kafkajs";
import mariadb from "mariadb";
import mysql2 from "mysql2/promise";
import pg from "pg";
import { createOutbox, createRelay, migrate } from "rowpost";
import { kafkaFromUrl } from "rowpost/kafka";
import { mariadb as mariadbDatabase } from "rowpost/mariadb";
import { mqttFromUrl } from "rowpost/mqtt";
import { mysql } from "rowpost/mysql";
import { natsFromUrl } from "rowpost/nats";
import { postgres } from "rowpost/postgres";
import { rabbitmqFromUrl } from "rowpost/rabbitmq";
import { redisFromUrl } from "rowpost/redis";
import { rocketmqFromUrl } from "rowpost/rocketmq";

const MESSAGES = 20;
/** All rows, and those that are not `sent` (2) with all that belongs to it. */
const COUNTS = `SELECT COUNT(*) AS messages,
    COUNT(*) - COUNT(CASE WHEN state = 2 AND message_id <> '' AND sent_at IS NOT NULL AND next_retry_at IS NULL
      AND delivery_count >= 1 THEN 1 END) AS incomplete
  FROM local_message`;
/** Its clients cannot make one. */
const ROCKETMQ_TOPIC = "rowpost-peers";
const [mariadbUrl, mysqlUrl, postgresUrl, ...brokerUrls] = process.argv.slice(2);
const name = `rowpost_test_peers_${randomBytes(4).toString("hex")}`;

/** A place for messages on each broker: what takes the topic, and how it goes away. */
const topics = {
  async amqp(url) {
    const connection = await amqplib.connect(url);
    const channel = await connection.createChannel();
    await channel.assertQueue(name);
    return async () => {
      await channel.deleteQueue(name);
      await connection.close();
    };
  },
  redis: async () => async () => {},
  async nats(url) {
    const connection = await connectNats({ servers: url });
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name, subjects: [name] });
    return async () => {
      await manager.streams.delete(name);
      await connection.close();
    };
  },
  // Taken with and without a subscriber.
  mqtt: async () => async () => {},
  async kafka(url) {
    const kafka = new Kafka({ brokers: [new URL(url).host], logLevel: logLevel.NOTHING });
    const admin = kafka.admin();
    await admin.connect();
    await admin.createTopics({ waitForLeaders: false, topics: [{ topic: name, numPartitions: 1 }] });
    // kafkajs' own wait for leaders fails while the broker has not heard of its new topic yet.
    const known = () =>
      admin.fetchTopicMetadata({ topics: [name] }).then(
        ({ topics }) => topics[0].partitions.every(({ leader }) => leader >= 0),
        () => false,
      );
    for (let look = 0; look < 300 && !(await known()); look += 1) await sleep(100);
    return async () => {
      await admin.deleteTopics({ topics: [name] });
      await admin.disconnect();
    };
  },
  rocketmq: async () => async () => {},
};
const brokers = {
  amqp: rabbitmqFromUrl,
  redis: redisFromUrl,
  nats: natsFromUrl,
  mqtt: mqttFromUrl,
  kafka: kafkaFromUrl,
  rocketmq: rocketmqFromUrl,
};

const withMysql2 = (url) => async () => {
  const { hostname: host, port, username: user, password } = new URL(url);
  const options = { host, port: Number(port), user, password };
  const admin = await mysql2.createConnection(options);
  await admin.query(`CREATE DATABASE ${name}`);
  const pool = mysql2.createPool({ ...options, database: name });
  return {
    database: mysql({ pool }),
    query: async (text) => (await pool.query(text))[0],
    async inTransaction(work, end) {
      const connection = await pool.getConnection();
      await connection.query("BEGIN");
      await work(connection);
      await connection.query(end);
      connection.release();
    },
    async drop() {
      await pool.end();
      await admin.query(`DROP DATABASE ${name}`);
      await admin.end();
    },
  };
};

async function withMariadb() {
  const { hostname: host, port, username: user, password } = new URL(mariadbUrl);
  const options = { host, port: Number(port), user, password };
  const admin = await mariadb.createConnection(options);
  await admin.query(`CREATE DATABASE ${name}`);
  const pool = mariadb.createPool({ ...options, database: name, connectionLimit: 10 });
  return {
    database: mariadbDatabase({ pool }),
    query: (text) => pool.query(text),
    async inTransaction(work, end) {
      const connection = await pool.getConnection();
      await connection.query("BEGIN");
      await work(connection);
      await connection.query(end);
      await connection.release();
    },
    async drop() {
      await pool.end();
      await admin.query(`DROP DATABASE ${name}`);
      await admin.end();
    },
  };
}

async function withPg() {
  const admin = new pg.Client({ connectionString: postgresUrl });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${name}`);
  const pool = new pg.Pool({ connectionString: postgresUrl.replace(/\/[^/]*$/, `/${name}`) });
  // Its end() does not wait until the server has closed the connections; DROP … FORCE then meets
  // some of them. A fault of the round itself shows in its own statements.
  pool.on("error", () => undefined);
  return {
    database: postgres({ pool }),
    query: async (text) => (await pool.query(text)).rows,
    async inTransaction(work, end) {
      const client = await pool.connect();
      await client.query("BEGIN");
      await work(client);
      await client.query(end);
      client.release();
    },
    async drop() {
      await pool.end();
      await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
      await admin.end();
    },
  };
}

async function round(place, url) {
  const { database } = place;
  const scheme = new URL(url).protocol.slice(0, -1);
  const remove = await topics[scheme](url);
  const topic = scheme === "rocketmq" ? ROCKETMQ_TOPIC : name;
  const outbox = createOutbox({ database });
  const message = (key) => ({ type: "order.created", key: `${scheme}-${key}`, topic, body: { key, text: "张𠮷" } });
  const keys = Array.from({ length: MESSAGES }, (_, index) => index);
  await place.inTransaction((tx) => outbox.enqueue(tx, keys.map(message)), "COMMIT");
  await place.inTransaction((tx) => outbox.enqueue(tx, message("rolled-back")), "ROLLBACK");
  const relay = createRelay({ database, broker: brokers[scheme](url) });
  const { sent, failed, complete } = await relay.drain({ timeoutMs: 30_000 });
  await relay.stop();
  await remove();
  return sent === MESSAGES && failed === 0 && complete
    ? ""
    : `${scheme}: ${JSON.stringify({ sent, failed, complete })}`;
}

let red = false;
for (const [label, open] of Object.entries({
  mysql2: withMysql2(mysqlUrl),
  "mysql2 on MariaDB": withMysql2(mariadbUrl),
  mariadb: withMariadb,
  pg: withPg,
})) {
  const place = await open();
  try {
    await migrate(place.database, { layout: place.database.defaultLayout });
    const problems = [];
    for (const url of brokerUrls) problems.push(await round(place, url));
    const found = problems.filter((problem) => problem !== "");
    const [row] = await place.query(COUNTS);
    const counts = Object.fromEntries(Object.entries(row).map(([column, value]) => [column, Number(value)]));
    const expected = { messages: MESSAGES * brokerUrls.length, incomplete: 0 };
    const isGreen = found.length === 0 && isDeepStrictEqual(counts, expected);
    red ||= !isGreen;
    console.log(`${isGreen ? "ok " : "RED"} ${label}: ${JSON.stringify(counts)} ${found.join(", ")}`);
    await place.database.close();
  } finally {
    await place.drop();
  }
}
process.exitCode = red ? 1 : 0;
