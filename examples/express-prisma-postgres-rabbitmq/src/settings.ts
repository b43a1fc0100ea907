/** Where the servers are. */
export const DATABASE_URL = process.env.DATABASE_URL ?? "postgresql://postgres@127.0.0.1:5432/rowpost_example_express";
export const RABBITMQ_URL = process.env.RABBITMQ_URL ?? "amqp://127.0.0.1:5672";
/** The name of a queue: rowpost publishes to the default exchange unless it is told another. */
export const TOPIC = process.env.TOPIC ?? "rowpost_example_orders";
