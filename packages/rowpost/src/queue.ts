/**
 * rowpost/queue: a message queue stored in your SQL database, and the broker that a relay fills it
 * with.
 *
 * @module
 */
export { type QueueBrokerOptions, queueBroker } from "./brokers/queue/index.ts";
export * from "./queue/index.ts";
