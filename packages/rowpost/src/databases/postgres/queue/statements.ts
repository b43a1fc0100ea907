/** All statements of the queue, as a namespace. */
export * from "./append.ts";
export * from "./consume.ts";
export * from "./leases.ts";
export * from "./redelivery.ts";
export * from "./schema.ts";
export * from "./topics.ts";
