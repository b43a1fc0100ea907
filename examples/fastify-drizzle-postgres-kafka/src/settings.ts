/** Where the servers are. */
export const DATABASE_URL = process.env.DATABASE_URL ?? "postgresql://postgres@127.0.0.1:5432/rowpost_example_fastify";
export const KAFKA_BROKERS = (process.env.KAFKA_BROKERS ?? "127.0.0.1:9092").split(",");
export const TOPIC = process.env.TOPIC ?? "rowpost_example_orders";
