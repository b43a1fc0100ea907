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
      /** Number of partitions for messages with an ordering key. */
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
  /** The lowest unfinished id of the group. */
  nextId: z.string(),
  lag: count,
  lagMs: z.number(),
  /** The message that the group is at; absent: it has read everything. */
  head: z.object({ id: z.string(), key: z.string().optional(), type: z.string().optional() }).optional(),
  /** Time since the last write for the group; absent: never. */
  movedMsAgo: z.number().optional(),
  waiting: count,
  dead: count,
  oldestWaiting: oldestWaiting.optional(),
  /** The member that reads it; absent: none. */
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
      /** Unfinished messages, besides those that come again. */
      lag: count,
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

/** All given conditions must match. */
export const queueSearchQuery = z.object({
  key: text(255).optional(),
  id: messageId.optional(),
  type: text(255).optional(),
  header: text(500)
    .refine((value) => value.indexOf("=") > 0, "must be name=value")
    .optional(),
  after: instant.optional(),
  before: instant.optional(),
  ...pageFields,
});

export const queueMessageList = z.object({
  items: z.array(queueMessage),
  next: z.string().nullable(),
  searched: z.object({
    /** The whole range was searched, and none of its months was dropped. */
    complete: z.boolean(),
    stopped: z.enum(["end", "limit", "budget"]),
    rows: z.number(),
    /** Months searched, the newest first, such as 202611. */
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
    /** Months whose table is missing, but was not dropped by rowpost. */
    absentMonths: z.array(z.number()),
  }),
  asOf: z.string(),
});

export const queueMessageDetail = z.object({
  message: queueMessage,
  groups: z.array(
    z.object({
      group: groupName,
      state: z.enum(["unread", "waiting", "dead", "consumed", "skipped", "discarded", "passed"]),
      attempts: z.number().optional(),
      nextAttemptAt: z.string().optional(),
      failReason: z.string().optional(),
    }),
  ),
  /** Ordered by group, round and attempt. A rewind begins another round. */
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
      /** Messages that one record covers. */
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
  /** Why it cannot be decoded by its media type. */
  problem: z.string().optional(),
});

export const queueDeadQuery = z.object({
  /** `dead`: given up. `waiting`: comes again. */
  state: z.enum(["dead", "waiting", "both"]).default("dead"),
  error: text(200).optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(500).optional(),
});

export const queueDeadList = z.object({
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

/** The queue stores shorter reasons than the audit. */
const shortReason = reason.refine((value) => value.length <= 255, "must have at most 255 characters");

export const queueHandBody = z.object({ reason: shortReason });
export const queueSkipBody = z.object({ reason: shortReason, id: messageId });

/** These ids, or all that match. */
const chosen = z.object({
  reason: shortReason,
  ids: z.array(messageId).min(1).max(1_000).optional(),
  /** Without ids: all dead letters; with `error` those whose last error contains it. */
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
  /** Body of the copy: JSON unless the message has another media type. */
  body: text(1_000_000),
});

export const queueChanged = z.object({
  changed: z.number(),
  /** Named messages whose state does not allow it. */
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
  /** Between the group's current and its new position. */
  messages: z.number(),
  consumed: z.number(),
  /** Months in between that were dropped. */
  droppedMonths: z.array(z.number()),
  asOf: z.string(),
});

export const queueRewindBody = z.object({
  to: goal,
  reason: shortReason,
  /** `partition` and `from` of the plan: refused if the group has moved. */
  expected: z.array(z.object({ partition: z.number().int().min(0).max(63), from: messageId })).max(64),
  /** Skips dropped months; without it a rewind over one is refused. */
  overDroppedMonths: z.boolean().default(false),
});

export const queueRewound = z.object({
  /** Its number in the log; null: the group was there already. */
  rewind: z.number().nullable(),
  partitions: z.array(moved),
  droppedMonths: z.array(z.number()),
  /** Redeliveries and dead letters whose messages come again anyway. */
  setAside: z.number(),
  /** Those of an earlier rewind, restored. */
  restored: z.number(),
});

export const queueRewindList = z.object({
  /** The newest first; at most 100 rows, one for each moved partition. */
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
