/**
 * pg-transactional-outbox with its polling listener, parallel messages, batch and pool of 20, polls
 * of 50 ms: the fastest of the settings tried.
 */
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { bodyOf, countQueries, runPeer } from "../protocol.mjs";

const load = createRequire(import.meta.url);
const pg = load("pg");
const outbox = load("pg-transactional-outbox");

const [url, messages] = process.argv.slice(2);
const BATCH = 20;
const database = new URL(url).pathname.slice(1);
const role = decodeURIComponent(new URL(url).username);
const connection = { connectionString: url };
const logger = outbox.getDisabledLogger();
const setup = {
  outboxOrInbox: "outbox",
  database,
  schema: "public",
  table: "outbox",
  listenerRole: role,
  handlerRole: role,
  nextMessagesSchema: "public",
  nextMessagesName: "next_outbox_messages",
};

const statements = countQueries(pg);
const control = new pg.Client(connection);
let shutdown = async () => {};

await runPeer(
  {
    statements,
    async prepare() {
      await control.connect();
      await control.query(outbox.DatabaseSetup.dropAndCreateTable(setup));
      await control.query(outbox.DatabaseSetup.createPollingFunction(setup));
      await control.query(outbox.DatabaseSetup.setupPollingIndexes(setup));
    },
    async fill(count) {
      for (let first = 0; first < count; first += 500) {
        const numbers = Array.from({ length: Math.min(500, count - first) }, (_, offset) => first + offset);
        await control.query(
          `INSERT INTO outbox (id, aggregate_type, aggregate_id, message_type, payload, concurrency, created_at)
           SELECT id, 'order', 'a' || number, 'order_created', payload::jsonb, 'parallel', clock_timestamp()
           FROM unnest($1::uuid[], $2::int[], $3::text[]) AS rows (id, number, payload)`,
          [numbers.map(() => randomUUID()), numbers, numbers.map((number) => JSON.stringify(bodyOf(number)))],
        );
      }
      await control.query("VACUUM ANALYZE outbox");
    },
    async start(onPublish) {
      const settings = {
        dbSchema: "public",
        dbTable: "outbox",
        nextMessagesFunctionSchema: "public",
        nextMessagesFunctionName: "next_outbox_messages",
        nextMessagesBatchSize: BATCH,
        nextMessagesPollingIntervalInMs: 50,
        enableMaxAttemptsProtection: true,
        enablePoisonousMessageProtection: true,
      };
      [shutdown] = outbox.initializePollingMessageListener(
        {
          outboxOrInbox: "outbox",
          dbHandlerConfig: { ...connection, max: BATCH },
          dbListenerConfig: connection,
          settings,
        },
        { handle: async () => onPublish() },
        logger,
      );
    },
    stop: () => shutdown(),
    async waiting() {
      const { rows } = await control.query("SELECT COUNT(*) AS waiting FROM outbox WHERE processed_at IS NULL");
      return Number(rows[0].waiting);
    },
    close: () => control.end(),
  },
  Number(messages),
);
