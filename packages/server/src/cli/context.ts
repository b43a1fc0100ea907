export * from "../context.ts";
