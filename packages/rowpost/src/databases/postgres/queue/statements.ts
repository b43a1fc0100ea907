/** All statements of the queue, as a namespace. */
export * from "./append.ts";
export * from "./consume.ts";
export * from "./groups.ts";
export * from "./leases.ts";
export * from "./redelivery.ts";
export * from "./retention.ts";
export * from "./rewind.ts";
export * from "./schema.ts";
export * from "./search.ts";
export * from "./topics.ts";
export * from "./verify.ts";
