/**
 * A consumer in a separate process. Started with a URL; reports by IPC when it has joined, and the
 * number and time of each handled message.
 */
import { createQueue } from "rowpost/queue";
import { machineMs, numberOf } from "../relay/messages.ts";
import { openRowpost } from "../rowpost.ts";
import { TOPIC } from "./topic.ts";

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
// Ends with the bench, even if the bench dies.
process.once("disconnect", () => {
  void consumer
    .stop()
    .then(() => queue.close())
    .then(close)
    .then(() => process.exit(0));
});
say({ kind: "ready" });
