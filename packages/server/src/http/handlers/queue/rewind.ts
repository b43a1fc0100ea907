/** Rewinds of a group (回拨): preview, execution with a check, undo. */
import type { RewindPosition } from "rowpost/queue";
import type { HandlersOf } from "../../call.ts";
import { Problem } from "../../problem.ts";
import { instant } from "../../schemas.ts";
import { asked, audited } from "./asked.ts";

export function queueRewindHandlers(): HandlersOf<"queueRewinds" | "queueRewindPlan" | "queueRewind"> {
  return {
    async queueRewinds({ group, source, topic }) {
      const entries = await asked(() => source.queue().rewinds(topic, group));
      const items = entries.map(({ at, author, from, partition, reason, rewind, to, undoOf }) => ({
        rewind,
        partition,
        from,
        to,
        undoOf,
        author,
        reason,
        at,
      }));
      return { json: { items, asOf: new Date().toISOString() } };
    },

    async queueRewindPlan({ group, principal, query, source, topic }) {
      const goal = goalOf(query.to);
      const request = { topic, group, author: principal.name, reason: "plan", dryRun: true };
      const plan = await asked(() =>
        goal === "undo"
          ? source.queue().undoRewind(request)
          : source.queue().rewind({ ...request, to: goal, droppedMonths: "skip" }),
      );
      const { consumed = 0, droppedMonths, messages = 0, partitions } = plan;
      return {
        json: {
          partitions: partitions.map((each) => ({
            partition: each.partition,
            from: each.from,
            to: each.to,
            messages: each.messages ?? 0,
            consumed: each.consumed ?? 0,
          })),
          messages,
          consumed,
          droppedMonths: [...droppedMonths],
          asOf: new Date().toISOString(),
        },
      };
    },

    async queueRewind({ body, group, principal, source, topic }) {
      const { expected, overDroppedMonths, reason, to } = body;
      const goal = goalOf(to);
      const about = { topic, group, to, expected };
      const report = await audited(
        { source, principal, action: "queue rewind", reason, about },
        (by) =>
          goal === "undo"
            ? source.queue().undoRewind({ topic, group, ...by, expected })
            : source.queue().rewind({
                topic,
                group,
                ...by,
                expected,
                to: goal,
                droppedMonths: overDroppedMonths ? "skip" : "refuse",
              }),
        ({ partitions, rewind }) => ({ rewind, partitions }),
      );
      const { droppedMonths, partitions, restored, rewind, setAside } = report;
      return {
        json: {
          rewind: rewind ?? null,
          setAside,
          restored,
          droppedMonths: [...droppedMonths],
          partitions: partitions.map(({ from, partition, to: now }) => ({ partition, from, to: now })),
        },
      };
    },
  };
}

/** The schema has checked its form. */
function goalOf(text: string): RewindPosition | "undo" {
  if (text === "start" || text === "end" || text === "undo") return text;
  const at = text.indexOf(":");
  const value = text.slice(at + 1);
  switch (text.slice(0, at)) {
    case "id":
      return { id: value };
    case "back":
      return { back: Number(value) };
    case "group":
      return { group: value };
    default:
      return { time: timeOf(value) };
  }
}

function timeOf(text: string): Date {
  const parsed = instant.safeParse(text);
  if (parsed.success) return new Date(parsed.data);
  const message = "must be an instant with a zone, such as 2026-11-23T12:00:00Z";
  throw new Problem("invalid-request", `to: ${message}`, { more: { errors: [{ pointer: "/to", message }] } });
}
