/** What goes in and comes out of the message queue's pages. */
import { z } from "zod";
import { count, instant, instantOrNull, messageId, pageFields, reason, text } from "./schemas.ts";

const topicName = z.string();
const groupName = z.string();

export const queueTopicList = z.object({
  /** False: this database has no message queue; `rowpost queue create` makes it. */
  tables: z.boolean(),
  items: z.array(
    z.object({
      topic: topicName,
      partitions: z.number(),
      /** Over so many of them messages with an ordering key are spread. */
      keyedPartitions: z.number(),
      /** Null: for ever. */
      retentionMonths: z.number().nullable(),
    }),
  ),
  asOf: z.string(),
});

const oldestWaiting = z.object({
  id: z.string(),
  attempt: z.number(),
  error: z.string().optional(),
  nextAttemptAt: z.string().optional(),
});

const queuePartition = z.object({
  partition: z.number(),
  /** The lowest id that the group has not finished. */
  nextId: z.string(),
  lag: count,
  lagMs: z.number(),
  /** What the group is at; absent: it has read everything. */
  head: z.object({ id: z.string(), key: z.string().optional(), type: z.string().optional() }).optional(),
  /** Since anything was written for the group; absent: never. */
  movedMsAgo: z.number().optional(),
  waiting: count,
  dead: count,
  oldestWaiting: oldestWaiting.optional(),
  /** Who reads it; absent: nobody. */
  member: z
    .object({
      owner: z.string(),
      label: z.string().optional(),
      since: z.string().optional(),
      /** Since its last sign of life; absent: it has signed off. */
      seenMsAgo: z.number().optional(),
    })
    .optional(),
});

export const queueGroupList = z.object({
  items: z.array(
    z.object({
      group: groupName,
      paused: z.object({ at: z.string(), author: z.string(), reason: z.string() }).optional(),
      /** Messages that it has not finished, beside those that come again. */
      lag: count,
      /** Age of the oldest of them. */
      lagMs: z.number(),
      waiting: count,
      dead: count,
      partitions: z.array(queuePartition),
    }),
  ),
  asOf: z.string(),
});

const queueMessage = z.object({
  id: z.string(),
  partition: z.number(),
  key: z.string().optional(),
  type: z.string().optional(),
  contentType: z.string().optional(),
  orderingKey: z.string().optional(),
  sentAt: z.string(),
  deliverAt: instantOrNull,
  producer: z.object({ group: z.string().optional(), ip: z.string().optional(), port: z.number().optional() }),
});

/** What is looked for. All that is given must hold. */
export const queueSearchQuery = z.object({
  key: text(255).optional(),
  id: messageId.optional(),
  type: text(255).optional(),
  /** `name=value`. */
  header: text(500)
    .refine((value) => value.indexOf("=") > 0, "must be name=value")
    .optional(),
  /** Sent then or later. */
  after: instant.optional(),
  /** Sent earlier than this. */
  before: instant.optional(),
  ...pageFields,
});

export const queueMessageList = z.object({
  /** The newest first. */
  items: z.array(queueMessage),
  next: z.string().nullable(),
  searched: z.object({
    /** All of the range was searched, and no month of it was dropped. */
    complete: z.boolean(),
    stopped: z.enum(["end", "limit", "budget"]),
    /** Messages that were looked at. */
    rows: z.number(),
    /** Months that were looked into, the newest first, such as 202611. */
    months: z.array(z.number()),
    droppedMonths: z.array(
      z.object({
        month: z.number(),
        author: z.string(),
        reason: z.string(),
        droppedAt: z.string(),
        archive: z.string().nullable(),
      }),
    ),
    /** Months without a table that nobody dropped by rowpost. */
    absentMonths: z.array(z.number()),
  }),
  asOf: z.string(),
});

export const queueMessageDetail = z.object({
  message: queueMessage,
  /** Every group of the topic. */
  groups: z.array(
    z.object({
      group: groupName,
      state: z.enum(["unread", "waiting", "dead", "consumed", "skipped", "discarded", "passed"]),
      attempts: z.number().optional(),
      nextAttemptAt: z.string().optional(),
      failReason: z.string().optional(),
    }),
  ),
  /** In order of groups, rounds and attempts. A rewind begins another round. */
  attempts: z.array(
    z.object({
      group: groupName,
      round: z.number(),
      attempt: z.number(),
      result: z.string(),
      at: z.string(),
      durationMs: z.number(),
      ip: z.string().optional(),
      port: z.number().optional(),
      instance: z.string(),
      error: z.string().optional(),
      /** Messages that one record stands for. */
      batch: z.number().optional(),
    }),
  ),
  asOf: z.string(),
});

export const queueBody = z.object({
  /** At most 262,144 characters. */
  body: z.string(),
  truncated: z.boolean(),
  length: z.number(),
  contentType: z.string().optional(),
  headers: z.record(z.string(), z.string()).optional(),
  /** Why it cannot be read as what it says it is. */
  problem: z.string().optional(),
});

export const queueDeadQuery = z.object({
  /** `dead`: given up. `waiting`: comes again. */
  state: z.enum(["dead", "waiting", "both"]).default("dead"),
  /** Part of the last error. */
  error: text(200).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(500).optional(),
});

export const queueDeadList = z.object({
  /** In order of partitions and ids. */
  items: z.array(
    z.object({
      id: z.string(),
      partition: z.number(),
      state: z.enum(["dead", "waiting"]),
      attempt: z.number(),
      error: z.string().optional(),
      nextAttemptAt: z.string().optional(),
      since: z.string(),
      key: z.string().optional(),
      type: z.string().optional(),
      /** False: its month was dropped. */
      isThere: z.boolean(),
    }),
  ),
  next: z.string().nullable(),
  asOf: z.string(),
});

/** The queue keeps less of a reason than the audit. */
const shortReason = reason.refine((value) => value.length <= 255, "must have at most 255 characters");

export const queueHandBody = z.object({ reason: shortReason });
export const queueSkipBody = z.object({ reason: shortReason, id: messageId });

/** These, or all that match. */
const chosen = z.object({
  reason: shortReason,
  ids: z.array(messageId).min(1).max(1_000).optional(),
  /** Without ids: all dead letters, with `error` those whose last error has this in it. */
  all: z.literal(true).optional(),
  error: text(200).optional(),
});

export const queueChosenBody = chosen.refine(
  ({ all, ids }) => (all === undefined) !== (ids === undefined),
  "give ids, or all",
);

export const queueEditBody = z.object({
  reason: shortReason,
  id: messageId,
  /** Of the copy: JSON, unless the message has another media type. */
  body: text(1_000_000),
});

export const queueChanged = z.object({
  changed: z.number(),
  /** What was named and is in no state for it. */
  conflicts: z.array(z.object({ id: z.string(), state: z.enum(["waiting", "dead", "aside", "absent"]) })),
});
export const queueDone = z.object({ changed: z.boolean() });
export const queueCopied = z.object({ copy: z.string() });

/** `start`, `end`, `undo`, `time:2026-11-23T12:00:00Z`, `id:912…`, `back:100`, `group:billing`. */
const goal = text(120).refine(
  (value) => /^(start|end|undo|time:.+|id:\d{1,19}|back:[1-9]\d{0,8}|group:.+)$/.test(value),
  "must be start, end, undo, time:INSTANT, id:ID, back:N or group:NAME",
);

export const queueRewindQuery = z.object({ to: goal });

const moved = z.object({ partition: z.number(), from: z.string(), to: z.string() });

export const queueRewindPlan = z.object({
  partitions: z.array(moved.extend({ messages: z.number(), consumed: z.number() })),
  /** Between where the group is and where it would be. */
  messages: z.number(),
  /** Those of them that it has consumed already. */
  consumed: z.number(),
  /** Months in between whose messages cannot come again. */
  droppedMonths: z.array(z.number()),
  asOf: z.string(),
});

export const queueRewindBody = z.object({
  to: goal,
  reason: shortReason,
  /** `partition` and `from` of the plan: refused when the group is not there any more. */
  expected: z.array(z.object({ partition: z.number().int().min(0).max(63), from: messageId })).max(64),
  /** Months that are gone are left out; without it a rewind over one is refused. */
  overDroppedMonths: z.boolean().default(false),
});

export const queueRewound = z.object({
  /** Its number in the log; null: the group was there already. */
  rewind: z.number().nullable(),
  partitions: z.array(moved),
  droppedMonths: z.array(z.number()),
  /** Redeliveries and dead letters whose messages come again anyway. */
  setAside: z.number(),
  /** Those of an earlier rewind that are there again. */
  restored: z.number(),
});

export const queueRewindList = z.object({
  /** The newest first; at most 100 rows, one for each partition that moved. */
  items: z.array(
    moved.extend({
      rewind: z.number(),
      undoOf: z.number().nullable(),
      author: z.string(),
      reason: z.string(),
      at: z.string(),
    }),
  ),
  asOf: z.string(),
});
