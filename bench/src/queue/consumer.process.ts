/**
 * A consumer in a process of its own. Started with a URL; tells by IPC when it has joined, and, for
 * each message, its number and when it was handled.
 */
import { createQueue } from "rowpost/queue";
import { machineMs, numberOf } from "../relay/messages.ts";
import { openRowpost } from "../rowpost.ts";
import { TOPIC } from "./topic.ts";

/** What the process says. */
export type ConsumerProcessMessage =
  | { readonly kind: "ready" }
  | { readonly kind: "handled"; readonly number: number; readonly atMs: number };

const url = process.argv[2] ?? "";
const { database, close } = await openRowpost(url);
const queue = createQueue({ database });
const say = (message: ConsumerProcessMessage): void => {
  process.send?.(message);
};
const consumer = await queue.consume({
  topic: TOPIC,
  group: "bench",
  from: "end" as const,
  handler: ({ key }) => say({ kind: "handled", number: numberOf(key ?? ""), atMs: machineMs() }),
});
// A bench that ends, or dies, must not leave consumers behind.
process.once("disconnect", () => {
  void consumer
    .stop()
    .then(() => queue.close())
    .then(close)
    .then(() => process.exit(0));
});
say({ kind: "ready" });
