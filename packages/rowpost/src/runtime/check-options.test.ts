/** Every factory with options from plain JavaScript: an unknown name and a wrong kind. */
import { expect, test } from "vitest";
import { http } from "../brokers/http.ts";
import { kafka } from "../brokers/kafka/index.ts";
import { memory } from "../brokers/memory.ts";
import { nats } from "../brokers/nats/index.ts";
import { queueBroker } from "../brokers/queue/index.ts";
import { rabbitmq } from "../brokers/rabbitmq/index.ts";
import { redis } from "../brokers/redis/index.ts";
import { rocketmq } from "../brokers/rocketmq/index.ts";
import { routes } from "../brokers/routes.ts";
import { stdout } from "../brokers/stdout.ts";
import { mysql } from "../databases/mysql/index.ts";
import { mariadb } from "../databases/mysql/mariadb.ts";
import { postgres } from "../databases/postgres/index.ts";
import { createLayout } from "../databases/sql/layouts.ts";
import { sqlite } from "../databases/sqlite/index.ts";
import { createOutbox } from "../outbox/outbox.ts";
import { createQueue } from "../queue/queue.ts";
import { createRelay } from "../relay/relay.ts";
import { checkOptions, refuseUnknown } from "./check-options.ts";
import { ConfigurationError } from "./errors.ts";

const database = sqlite({ file: ":memory:" });
const ends = { database, broker: memory() };
type Given = Readonly<Record<string, unknown>>;

/** Name, factory, valid options, a misspelled name, a wrong kind. */
const FACTORIES: readonly (readonly [string, (options: never) => unknown, Given, Given, RegExp, Given, RegExp])[] = [
  [
    "createRelay",
    createRelay,
    ends,
    { batchsize: 5 },
    /did you mean "batchSize"/,
    { batchSize: "5" },
    /batchSize must be a number, not a string/,
  ],
  [
    "createOutbox",
    createOutbox,
    { database },
    { created_by: "x" },
    /did you mean "createdBy"/,
    { createdBy: 5 },
    /createdBy must be a string/,
  ],
  [
    "createQueue",
    createQueue,
    { database },
    { producer: "x" },
    /did you mean "producerGroup"/,
    { ip: 5 },
    /ip must be a string/,
  ],
  [
    "queueBroker",
    queueBroker,
    { queue: createQueue({ database }) },
    { createTopic: {} },
    /did you mean "createTopics"/,
    { createTopics: 4 },
    /createTopics must be an object/,
  ],
  [
    "createLayout",
    createLayout,
    {},
    { tableName: "x" },
    /did you mean "table"/,
    { columns: "id" },
    /columns must be an object/,
  ],
  [
    "kafka broker",
    kafka,
    { brokers: "h:1" },
    { broker: "h:1" },
    /did you mean "brokers"/,
    { brokers: 9092 },
    /brokers must be a string or an array/,
  ],
  [
    "rocketmq broker",
    rocketmq,
    { endpoints: "h:1" },
    { endpoint: "h:1" },
    /did you mean "endpoints"/,
    { endpoints: 8081 },
    /endpoints must be a string or an array/,
  ],
  [
    "rabbitmq broker",
    rabbitmq,
    { url: "amqp://h" },
    { heartbeat: 5 },
    /did you mean "heartbeatSeconds"/,
    { route: "x" },
    /route must be a function/,
  ],
  [
    "nats broker",
    nats,
    { servers: "h" },
    { server: "h" },
    /did you mean "servers"/,
    { stream: 5 },
    /stream must be a string or a function/,
  ],
  [
    "redis broker",
    redis,
    { url: "redis://h" },
    { maxlen: 5 },
    /did you mean "maxLength"/,
    { streamOf: "x" },
    /streamOf must be a function/,
  ],
  [
    "http broker",
    http,
    { url: "http://h" },
    { timeout: 5 },
    /did you mean "timeoutMs"/,
    { urlByTopic: {} },
    /urlByTopic must be a function/,
  ],
  [
    "memory broker",
    memory,
    {},
    { topic: [] },
    /did you mean "topics"/,
    { topics: "orders" },
    /topics must be an array/,
  ],
  [
    "stdout broker",
    stdout,
    {},
    { steam: {} },
    /did you mean "stream"/,
    { stream: "x" },
    /stream is "x"; it must be a stream/,
  ],
  [
    "mysql\\(\\)",
    mysql,
    { host: "h" },
    { pass: "s3cret" },
    /did you mean "password"/,
    { port: "s3cret" },
    /port must be a number, not a string/,
  ],
  [
    "mariadb\\(\\)",
    mariadb,
    { host: "h" },
    { username: "s3cret" },
    /did you mean "user"/,
    { ssl: 5 },
    /ssl must be true or false or an object/,
  ],
  [
    "postgres\\(\\)",
    postgres,
    { url: "postgres://h" },
    { urls: "s3cret" },
    /did you mean "url"/,
    { prepare: "yes" },
    /prepare must be true or false/,
  ],
  [
    "sqlite\\(\\)",
    sqlite,
    { file: ":memory:" },
    { filename: "x" },
    /did you mean "file"/,
    { file: 5 },
    /file must be a string/,
  ],
];

function thrownBy(make: (options: never) => unknown, options: unknown): unknown {
  try {
    return make(options as never);
  } catch (error) {
    return error;
  }
}

test.each(FACTORIES)("%s refuses what it does not know", (what, make, right, unknown, guess, wrong, words) => {
  expect(thrownBy(make, right)).not.toBeInstanceOf(Error);
  for (const options of [
    { ...right, ...unknown },
    { ...right, ...wrong },
  ]) {
    const error = thrownBy(make, options);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(String(error)).toMatch(new RegExp(what));
    expect(String(error)).not.toMatch(/s3cret/);
  }
  expect(String(thrownBy(make, { ...right, ...unknown }))).toMatch(guess);
  const [known] = Object.keys(right);
  expect(String(thrownBy(make, { ...right, ...unknown }))).toMatch(new RegExp(`is not an option .*${known ?? ""}`));
  expect(String(thrownBy(make, { ...right, ...wrong }))).toMatch(words);
  for (const shape of ["s3cret", 5, null, []]) {
    const error = thrownBy(make, shape);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(String(error)).not.toMatch(/s3cret/);
  }
});

test.each<[unknown, RegExp]>([
  [{}, /createRelay takes \{ database \}, made by mysql/],
  [{ database, pool: {} }, /createRelay takes \{ broker \}, made by an adapter/],
  [{ ...ends, broker: "kafka" }, /createRelay takes \{ broker \}/],
  [{ ...ends, layout: "t_local_message" }, /layout is "t_local_message"; it must be an object: tLocalMessage/],
  [
    { ...ends, retry: { maxAttempt: 5 } },
    /retry: "maxAttempt" is not an option \(maxAttempts, .*did you mean "maxAttempts"/,
  ],
  [{ ...ends, poll: { min: 5 } }, /poll: "min" is not an option/],
  [{ ...ends, retention: { onsent: "delete" } }, /retention: "onsent" .*did you mean "onSent"/],
  [{ ...ends, retention: { onSent: "drop" } }, /retention.onSent must be "keep" or "archive" or "delete", not drop/],
  [{ ...ends, sendingMark: true }, /sendingMark must be a string, not true/],
  [{ ...ends, onFailed: "stop" }, /onFailed must be "block" or "skip", not stop/],
  [{ ...ends, logger: "quiet" }, /logger must be "silent", not quiet/],
  [{ ...ends, types: ["order.created"] }, /types takes what messageType makes/],
])("createRelay refuses %j", (options, words) => {
  expect(thrownBy(createRelay, options)).toBeInstanceOf(ConfigurationError);
  expect(String(thrownBy(createRelay, options))).toMatch(words);
});

test.each<[(options: never) => unknown, unknown, RegExp]>([
  [createLayout, { columns: { body: "x" } }, /columns: "body" .*did you mean "messageBody"/],
  [createLayout, { columns: { topic: null } }, /columns.topic must be the name of a column: nothing works without it/],
  [createLayout, { states: { done: 9 } }, /states: "done" is not an option \(pending, /],
  [createLayout, { clock: "local" }, /clock must be "utc" or "server"/],
  [createLayout, { base: "t_local_message" }, /base is "t_local_message"; it must be an object/],
  [kafka, { brokers: "h:1", sasl: { user: "s3cret", password: "s3cret" } }, /sasl: "user" .*did you mean "username"/],
  [kafka, { brokers: "h:1", tls: { cafile: "x" } }, /tls: "cafile" .*did you mean "ca"|tls: "cafile" is not an option/],
  [rocketmq, {}, /endpoints/],
  [mysql, { pool: {}, url: "mysql://s3cret" }, /not url beside pool/],
  [mysql, {}, /mysql\(\): takes \{ pool \}, \{ url \} or connection options/],
  [mysql, { url: 5 }, /url must be a string/],
  [postgres, { host: "h" }, /exactly one of pool, url, options: "host" is not an option/],
])("%o refuses %j", (make, options, words) => {
  expect(thrownBy(make, options)).toBeInstanceOf(ConfigurationError);
  expect(String(thrownBy(make, options))).toMatch(words);
  expect(String(thrownBy(make, options))).not.toMatch(/s3cret/);
});

test("routes takes patterns with brokers, and only otherwise beside them", () => {
  const table = { "orders.*": memory() };
  expect(() => routes("orders" as never)).toThrow(ConfigurationError);
  expect(() => routes(table, { other: memory() } as never)).toThrow(
    /"other" is not an option \(otherwise\); did you mean/,
  );
});

test("what is undefined counts as left out, and nothing is guessed that is not near", () => {
  const kinds = { limit: "number" } as const;
  expect(() => checkOptions<{ limit?: number | undefined }>("x", { limit: undefined }, kinds)).not.toThrow();
  expect(() => refuseUnknown("x", { colour: 1 }, ["limit", "table"])).toThrow(
    /"colour" is not an option \(limit, table\)$/,
  );
});
