/** Where the servers are; topic and consumer group have to be there (README). */
export const DATABASE_URL = process.env.DATABASE_URL ?? "mysql://root@127.0.0.1:3306/rowpost_example_nestjs";
export const ROCKETMQ_ENDPOINTS = process.env.ROCKETMQ_ENDPOINTS ?? "127.0.0.1:8081";
export const TOPIC = process.env.TOPIC ?? "rowpost_example_orders";
export const GROUP = process.env.GROUP ?? "rowpost_example";
