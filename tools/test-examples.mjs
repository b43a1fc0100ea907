/**
 * Runs the examples as a user would: the packages as they would be published, each example in a
 * folder of its own outside of the repository, `npm install`, `npm start`. Each compares its orders
 * with the messages that arrived, and says so in its exit code.
 *
 *   node tools/test-examples.mjs [NAME...]    these, or all
 *
 * Needs `npm run build` and the servers of docs/services.md. Databases, topics and queues are the
 * run's own and are removed. With ROWPOST_TEST_REPORTS a report as vitest writes it goes there.
 * Exit status: 0 all green, 1 some are not.
 */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createConnection } from "mysql2/promise";
import pg from "pg";
import { command } from "./command.mjs";
import { pack } from "./packed.mjs";
import { probe } from "./services/probe.js";

const LIMIT_MS = 150_000;
/** No program: packages/rowpost/test/docs/inserts.test.ts runs its content. */
const STATEMENTS_ONLY = "other-languages";
const run = `rowpost_test_example_${randomBytes(4).toString("hex")}`;

/** The addresses of servers, without the path: `mysql://root@127.0.0.1:3306`. */
async function addressOf(name) {
  const { address } = await probe(name);
  return address.replace(/^mariadb:/, "mysql:").replace(/(:\d+)\/.*$/, "$1");
}

/** Functions that drop this run's databases, by name. */
const made = new Map();

async function mysqlUrl(example) {
  const server = await addressOf("mariadb");
  const name = `${run}_${example}`;
  made.set(name, async () => {
    const connection = await createConnection(server);
    await connection.query(`DROP DATABASE IF EXISTS ${name}`);
    await connection.end();
  });
  return `${server}/${name}`;
}

async function postgresUrl(example) {
  const server = await addressOf("postgres");
  const name = `${run}_${example}`;
  made.set(name, async () => {
    const client = new pg.Client({ connectionString: `${server}/postgres` });
    await client.connect();
    await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    await client.end();
  });
  return `${server}/${name}`;
}

/** Output of a script of tools/services. */
function service(name, ...args) {
  return execFileSync(join("tools/services", name), args, { encoding: "utf8" }).trim();
}

const EXAMPLES = {
  "own-table": async () => ({}),
  "nestjs-typeorm-mariadb-rocketmq": async () => {
    // RocketMQ's clients cannot create them; they stay for all runs.
    service("rocketmq", "topic", "rowpost-examples");
    service("rocketmq", "group", "rowpost-examples");
    return {
      DATABASE_URL: await mysqlUrl("nestjs"),
      ROCKETMQ_ENDPOINTS: new URL(await addressOf("rocketmq")).host,
      TOPIC: "rowpost-examples",
      GROUP: "rowpost-examples",
    };
  },
  "fastify-drizzle-postgres-kafka": async () => ({
    DATABASE_URL: await postgresUrl("fastify"),
    KAFKA_BROKERS: new URL(await addressOf("kafka")).host,
    TOPIC: run,
  }),
  "express-prisma-postgres-rabbitmq": async () => ({
    DATABASE_URL: await postgresUrl("express"),
    RABBITMQ_URL: await addressOf("rabbitmq"),
    TOPIC: run,
    // `prisma generate` downloads this program and does not use it.
    PRISMA_SCHEMA_ENGINE_BINARY: "/bin/true",
  }),
  "queue-sqlite": async () => ({}),
  "queue-mysql": async () => ({ DATABASE_URL: await mysqlUrl("queue_mysql") }),
  "outbox-to-queue": async () => ({ DATABASE_URL: await postgresUrl("outbox_to_queue") }),
  "python-insert-rabbitmq": async () => ({
    DATABASE_URL: await mysqlUrl("python"),
    RABBITMQ_URL: await addressOf("rabbitmq"),
    PYTHONPATH: service("python-packages"),
  }),
};

async function runExample(name, folder, tarballs) {
  const output = [];
  const cwd = join(folder, name);
  let problem = "";
  try {
    cpSync(join("examples", name), cwd, { recursive: true });
    const path = join(cwd, "package.json");
    const manifest = JSON.parse(readFileSync(path, "utf8"));
    const wanted = Object.keys(manifest.dependencies).filter((each) => each in tarballs);
    // Nothing is published yet: rowpost-server and rowpost-nestjs find rowpost here too.
    for (const each of ["rowpost", ...wanted]) manifest.dependencies[each] = `file:${tarballs[each].path}`;
    writeFileSync(path, JSON.stringify(manifest));
    const env = { ...process.env, ...(await EXAMPLES[name]()) };
    const quiet = ["--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline"];
    const options = { cwd, env, output, limitMs: LIMIT_MS };
    await command(options, "npm", "install", ...quiet);
    await command(options, "npm", "start", "--silent");
  } catch (error) {
    problem = String(error);
  }
  const text = Buffer.concat(output).toString();
  if (problem === "" && !/^lost=0 phantom=0$/m.test(text)) problem = "it did not say lost=0 phantom=0";
  console.log(`\n== ${name}\n${text}${problem === "" ? "ok " : "RED"} ${name} ${problem}`);
  return { name, problem };
}

/** Leftovers are reported as separate problems, and hide no example's. */
async function dropDatabases() {
  const results = [];
  for (const [name, drop] of made) {
    await drop().catch((error) => results.push({ name: `drop ${name}`, problem: String(error) }));
  }
  return results;
}

/** Example folders without an environment above. */
function unknownExamples() {
  return readdirSync("examples", { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !(entry.name in EXAMPLES) && entry.name !== STATEMENTS_ONLY)
    .map(({ name }) => ({ name, problem: "tools/test-examples.mjs does not run it: give it an entry in EXAMPLES" }));
}

/** Counted by .ci/count.mjs. */
function writeReport(results) {
  const folder = process.env.ROWPOST_TEST_REPORTS;
  if (folder === undefined) return;
  mkdirSync(folder, { recursive: true });
  const testResults = results.map(({ name, problem }) => ({
    name: join(process.cwd(), "examples", name),
    status: problem === "" ? "passed" : "failed",
    assertionResults: [
      {
        fullName: `examples ${name}`,
        ancestorTitles: ["examples"],
        status: problem === "" ? "passed" : "failed",
        failureMessages: problem === "" ? [] : [problem],
      },
    ],
  }));
  writeFileSync(join(folder, "examples.json"), JSON.stringify({ testResults }));
}

const named = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "rowpost-examples-"));
const results = unknownExamples();
try {
  const tarballs = await pack(folder);
  const names = named.length > 0 ? named : Object.keys(EXAMPLES);
  // Two at a time: an install waits for the network, a run for its servers.
  const next = async () => {
    for (let name = names.shift(); name !== undefined; name = names.shift()) {
      results.push(await runExample(name, folder, tarballs));
    }
  };
  await Promise.all([next(), next()]);
} finally {
  results.push(...(await dropDatabases()));
  rmSync(folder, { recursive: true, force: true });
  writeReport(results);
  console.log("");
  for (const { name, problem } of results) console.log(problem === "" ? `ok  ${name}` : `RED ${name} ${problem}`);
}
process.exitCode = results.every(({ problem }) => problem === "") ? 0 : 1;
