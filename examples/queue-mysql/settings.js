/** Where the server is; each run has a topic of its own. */
export const DATABASE_URL = process.env.DATABASE_URL ?? "mysql://root@127.0.0.1:3306/rowpost_example_queue";
export const TOPIC = process.env.TOPIC ?? `orders_${Date.now().toString(36)}`;
