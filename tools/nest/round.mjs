/**
 * Copied beside shop.process.mjs into a folder with one major of NestJS and the packed packages:
 * the shop takes orders in TypeORM transactions, one of which is rolled back, and gets SIGTERM once
 * its relay has published something. What was committed is published, once, and nothing else; the
 * relay has given back every shard that it had, which it does in its hook only. Its consumer has
 * given points for some messages by then, each once, and left all others to NATS.
 *
 *   node round.mjs MARIADB NATS
 */
import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";
import { createConnection } from "mysql2/promise";
import { createRelay, memory, migrate } from "rowpost";
import { createInbox } from "rowpost/inbox";
import { mysql } from "rowpost/mysql";
import { nats } from "rowpost/nats";

const ORDERS = 20;
const PAID = 500;
const server = process.argv[2].replace(/^mariadb:/, "mysql:");
const name = `rowpost_test_nest_${randomBytes(4).toString("hex")}`;
const url = `${server}/${name}`;
const ledger = `${import.meta.dirname}/ledger`;
const { version } = createRequire(import.meta.url)("@nestjs/core/package.json");

const connection = await createConnection(server);
const servers = new URL(process.argv[3]).host;
const jetstream = await connect({ servers });

async function ask(what, request = {}) {
  const answer = (await jetstream.request(`$JS.API.${what}`, JSON.stringify(request))).json();
  if (answer.error) throw new Error(answer.error.description);
  return answer;
}

/** A stream with messages for the shop's consumer. */
async function pay() {
  await ask(`STREAM.CREATE.${name}`, { name, subjects: [name], num_replicas: 1 });
  const config = { durable_name: "points", ack_policy: "explicit", deliver_policy: "all", max_deliver: -1 };
  await ask(`CONSUMER.DURABLE.CREATE.${name}.points`, { stream_name: name, config });
  const headers = (key) => ({ "rowpost-type": "order.paid", "rowpost-key": key });
  const about = { id: "1", type: "order.paid", topic: name, body: "{}", contentType: "application/json", attempt: 1 };
  const keys = Array.from({ length: PAID }, (_, index) => `p${index}`);
  const broker = nats({ servers });
  const messages = keys.map((key) => ({ ...about, key, headers: headers(key), orderingKey: undefined }));
  const sent = await broker.publish(messages, { signal: AbortSignal.timeout(60_000) });
  await broker.close();
  if (sent.some(({ status }) => status !== "sent")) throw new Error(JSON.stringify(sent));
}
await connection.query(`CREATE DATABASE ${name}`);
try {
  await connection.query(`CREATE TABLE ${name}.orders (id VARCHAR(64) PRIMARY KEY)`);
  const database = mysql({ url });
  await migrate(database, { layout: database.defaultLayout });
  await createInbox({ database }).migrate();
  await connection.query(`CREATE TABLE ${name}.points (id VARCHAR(64) PRIMARY KEY)`);
  await pay();

  const shop = fork("shop.process.mjs", [
    JSON.stringify({ service: "mariadb", url, ledger, nats: { servers, stream: name } }),
  ]);
  shop.once("exit", (code) => {
    if (code) process.exit(code); // it has said why
  });
  const [{ port }] = await once(shop, "message");
  const order = async (id) => {
    const headers = { "content-type": "application/json" };
    const { status } = await fetch(`http://127.0.0.1:${port}/orders`, {
      method: "POST",
      headers,
      body: JSON.stringify({ id }),
    });
    return status;
  };
  const statuses = [];
  for (let number = 1; number <= ORDERS; number += 1) statuses.push(await order(`o${number}`));
  const refused = await order("o1"); // there already: its message is rolled back with it

  const inLedger = () => (existsSync(ledger) ? readFileSync(ledger, "utf8").trim().split("\n") : []);
  for (let look = 0; look < 600 && inLedger().length === 0; look += 1) await sleep(100);
  const publishedByShop = inLedger().length;
  const points = async () => {
    const [rows] = await connection.query(`SELECT id FROM ${name}.points`);
    return rows.length;
  };
  for (let look = 0; look < 600 && (await points()) < 10; look += 1) await sleep(100);
  const owned = async () => {
    const [rows] = await connection.query(`SELECT shard FROM ${name}.local_message_shard WHERE owner IS NOT NULL`);
    return rows.length;
  };
  const ownedBefore = await owned();
  const exited = once(shop, "exit");
  shop.kill("SIGTERM");
  const [, signal] = await exited;
  const ownedAfter = await owned();
  const given = await points();
  const { ack_floor, delivered, ...left } = await ask(`CONSUMER.INFO.${name}.points`);
  // NATS 2.9 takes its place back when the one who pulled goes, and counts these twice then.
  const unacknowledged = Math.min(left.num_ack_pending, delivered.stream_seq - ack_floor.stream_seq);
  // What the shop committed after its relay had stopped is left for the next one.
  const broker = memory();
  await createRelay({ database, broker }).drain();
  await database.close();

  const published = [...inLedger(), ...broker.published().map(({ key }) => key)];
  const [rows] = await connection.query(`SELECT id FROM ${name}.orders`);
  const seen = JSON.stringify([
    new Set(statuses).size,
    statuses[0],
    refused,
    publishedByShop > 0,
    ownedBefore > 0,
    signal,
    ownedAfter,
    given >= 10 && given < PAID,
    given + unacknowledged + left.num_pending,
    rows.length,
    [...published].sort().join() ===
      rows
        .map(({ id }) => id)
        .sort()
        .join(),
  ]);
  const isGreen = seen === JSON.stringify([1, 201, 500, true, true, "SIGTERM", 0, true, PAID, ORDERS, true]);
  console.log(`${isGreen ? "ok " : "RED"} NestJS ${version}: ${seen}, ${published.length} published, ${given} given`);
  process.exitCode = isGreen ? 0 : 1;
} finally {
  await ask(`STREAM.DELETE.${name}`).catch(() => undefined);
  await jetstream.close();
  await connection.query(`DROP DATABASE ${name}`);
  await connection.end();
}
