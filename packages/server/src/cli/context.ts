/** What a command runs in. */
export * from "../context.ts";
