/**
 * Zod schemas of the API, from which the checks of requests, the app's types and the OpenAPI
 * document are derived. Ids are decimal strings, instants ISO 8601 UTC, durations milliseconds.
 */
import { z } from "zod";

const STATES = ["pending", "sending", "sent", "failed", "consumed", "suspended"] as const;
const MOST_ID = 2n ** 63n - 1n;

/** Refuses NUL, which PostgreSQL cannot store, and replaces lone surrogates. */
export function text(longest: number) {
  return z
    .string()
    .max(longest)
    .refine((value) => !value.includes("\u0000"), "must not hold the character NUL")
    .transform((value) => value.toWellFormed());
}

export const messageId = z
  .string()
  .regex(/^\d{1,19}$/, "must be a decimal number of up to 19 digits")
  .refine((id) => !/^\d{1,19}$/.test(id) || BigInt(id) <= MOST_ID, "must be at most 9223372036854775807");

/** With a zone, from 1970 to 9998, which every database accepts. */
export const instant = z
  .string()
  .max(40)
  .refine((value) => {
    const shape = /^(19[7-9]\d|[2-9]\d{3})-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)$/;
    return shape.test(value) && !value.startsWith("9999") && !Number.isNaN(Date.parse(value));
  }, "must be an instant with a zone, such as 2026-11-23T08:00:00Z");

export const state = z.enum(STATES);
export const anyState = z.enum([...STATES, "unknown"]);

/** `eq`: exactly; `gte`: at least; `est`: about. */
export const count = z.object({ value: z.number(), relation: z.enum(["eq", "gte", "est"]) });

export const instantOrNull = z.string().nullable();

/** A message without body and headers. Fields whose columns the table lacks are absent. */
export const message = z.object({
  id: z.string(),
  type: z.string(),
  key: z.string(),
  topic: z.string(),
  state: anyState,
  rawState: z.string(),
  contentType: z.string().nullish(),
  orderingKey: z.string().nullish(),
  retryCount: z.number(),
  deliveryCount: z.number().optional(),
  deliverAt: instantOrNull.optional(),
  nextRetryAt: instantOrNull,
  behindId: z.string().optional(),
  lastRetryAt: instantOrNull.optional(),
  failReason: z.string().nullable(),
  messageId: z.string().nullish(),
  lockVersion: z.string().optional(),
  sentAt: instantOrNull.optional(),
  consumedAt: instantOrNull.optional(),
  createdBy: z.string().nullish(),
  updatedBy: z.string().nullish(),
  gmtCreate: z.string(),
  gmtModified: z.string(),
  archived: z.boolean(),
});

const place = z.enum(["live", "archive"]);

/** How far a search came. `stopped`: at the end, at a full page, or at the time limit. */
const searched = z.object({
  complete: z.boolean(),
  stopped: z.enum(["end", "limit", "budget"]),
  places: z.array(place),
  /** The oldest id searched in the last place; absent: to its end. */
  downToId: z.string().optional(),
});

export function listOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    /** Opaque, for `cursor`; null: no further page. */
    next: z.string().nullable(),
    searched,
    total: count,
    asOf: z.string(),
  });
}

export const messageList = listOf(message);

export const pageFields = {
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(500).optional(),
  /** Time limit of a search without an index; `next` continues it. */
  budgetMs: z.coerce.number().int().min(10).max(5_000).default(2_000),
};

/** All given conditions must match. */
export const messageQuery = z.object({
  topic: text(255).optional(),
  type: text(255).optional(),
  key: text(255).optional(),
  keyPrefix: text(255).optional(),
  orderingKey: text(255).optional(),
  /** Comma-separated. */
  state: z
    .string()
    .transform((value) => value.split(","))
    .pipe(z.array(state).max(STATES.length))
    .optional(),
  reason: text(200).optional(),
  after: instant.optional(),
  before: instant.optional(),
  /** Places to search, in this order. */
  in: z
    .string()
    .transform((value) => value.split(","))
    .pipe(z.array(place).min(1).max(2))
    .refine((places) => new Set(places).size === places.length, "must not name a place twice")
    .default(["live"]),
  ...pageFields,
});

const explanation = z.object({
  heldBy: z.string(),
  text: z.string(),
  until: z.string().optional(),
  since: z.string().optional(),
  behindId: z.string().optional(),
  relay: z.string().optional(),
});

const changeByHand = z.object({
  at: z.string(),
  author: z.string(),
  action: z.string(),
  reason: z.string(),
  /** Of `copy`: the new message. */
  copyId: z.string().optional(),
  /** Of `copied`: the original. */
  copyOf: z.string().optional(),
});

export const messageDetail = z.object({
  message,
  explanation,
  changes: z.array(changeByHand),
  asOf: z.string(),
});

export const messageBody = z.object({
  /** At most 262,144 characters; `raw` has all of it. */
  body: z.string(),
  truncated: z.boolean(),
  length: z.number(),
  contentType: z.string().nullish(),
  /** As stored: a JSON object of strings. */
  headers: z.string().nullish(),
});

export const reason = text(1_000).refine((value) => value.trim() !== "", "say why");

export const reasonBody = z.object({ reason });
export const retryBody = z.object({
  reason,
  /** Also a message that waits for its next attempt. */
  now: z.boolean().default(false),
});
export const suspendBody = z.object({
  reason,
  /** End of the suspension; absent: until resumed. */
  until: instant.optional(),
});

export const copyBody = z.object({
  reason,
  /** Key of the copy; must be new for this type in the table. */
  key: text(255),
  topic: text(255).optional(),
  /** As stored; a binary body as base64. */
  body: z.string().optional(),
  headers: z.record(z.string(), z.string()).optional(),
  /** The fate of the original in the same transaction. */
  original: z.enum(["keep", "suspend", "archive"]).default("keep"),
});

export const copied = z.object({ message, original: message });

export const changed = z.object({ message });

const stateCounts = z.array(z.object({ state: anyState, count }));

const suspension = z.object({
  scope: z.enum(["ordering_key", "topic", "type", "relay"]),
  value: z.string(),
  reason: z.string(),
  author: z.string(),
  /** Null: until it is lifted. */
  endsInMs: z.number().nullable(),
});

const restingTopic = z.object({ topic: z.string(), restsForMs: z.number(), reason: z.string(), relay: z.string() });

export const topic = z.object({
  topic: z.string(),
  /** Unfinished messages. `gte`: only part of this state was looked at. */
  states: stateCounts,
  oldestAgeMs: z.number(),
  suspension: suspension.optional(),
  resting: z.array(restingTopic),
});

export const relay = z.object({
  owner: z.string(),
  label: z.string(),
  alive: z.boolean(),
  silentMs: z.number(),
  shards: z.array(z.number()),
  /** Absent: not yet reported. */
  report: z
    .object({
      ageMs: z.number(),
      version: z.string(),
      inFlight: z.number(),
      windowSize: z.number(),
      onFailed: z.enum(["block", "skip"]),
      brokers: z.array(z.object({ name: z.string(), awayForMs: z.number().optional(), reason: z.string().optional() })),
      restingTopics: z.array(restingTopic.omit({ relay: true })),
      moreResting: z.number(),
      lastError: z.object({ what: z.string(), agoMs: z.number() }).optional(),
    })
    .optional(),
});

export const relayList = z.object({
  items: z.array(relay),
  shards: z.object({ total: z.number(), unowned: z.array(z.number()) }),
  asOf: z.string(),
});

/**
 * The most important facts for an operator. `subject` is a broker, a topic or a scope: see `kind`.
 */
const problem = z.object({
  kind: z.enum(["no relay", "shards unowned", "broker away", "topic rests", "failed", "suspended"]),
  subject: z.string(),
  count: count.optional(),
  forMs: z.number().optional(),
  reason: z.string().optional(),
  author: z.string().optional(),
});

export const overview = z.object({
  problems: z.array(problem),
  states: stateCounts,
  /** All messages, including finished ones; absent: not yet known. */
  messages: count.optional(),
  oldestDue: z.object({ id: z.string(), topic: z.string(), waitingMs: z.number() }).optional(),
  topics: z.array(topic),
  relays: z.object({ alive: z.number(), known: z.number() }),
  suspensions: z.array(suspension),
  asOf: z.string(),
});

export const topicList = z.object({ items: z.array(topic), asOf: z.string() });

const failureGroup = z.object({
  fingerprint: z.string(),
  /** The beginning of the reason, such as HTTP_503. */
  code: z.string(),
  /** The reason with numbers, ids, hosts and quoted texts replaced by #. */
  pattern: z.string(),
  topic: z.string(),
  type: z.string(),
  count: z.number(),
  firstAt: z.string(),
  lastAt: z.string(),
  example: z.object({ id: z.string(), reason: z.string() }),
});

export const failureList = z.object({
  items: z.array(failureGroup),
  /** The newest failed messages examined; `gte`: there are more. */
  looked: count,
  asOf: z.string(),
});

const auditResult = z.enum(["done", "conflict", "denied", "begun", "cancelled", "failed"]);

export const auditEntry = z.object({
  id: z.string(),
  at: z.string(),
  author: z.string(),
  /** `cli`, `console`, `api`, `host`; null: from code. */
  via: z.string().nullable(),
  action: z.string(),
  reason: z.string(),
  /** `begun`: another entry has the result. */
  result: auditResult,
  changed: z.number(),
  /** The first 100. */
  ids: z.array(z.string()),
  before: z.array(
    z.object({
      id: z.string(),
      state: anyState,
      lockVersion: z.string().optional(),
      failReason: z.string().nullable(),
    }),
  ),
  details: z.unknown(),
});

export const auditQuery = z.object({
  author: text(64).optional(),
  action: text(32).optional(),
  result: auditResult.optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(500).optional(),
});

export const role = z.enum(["reader", "operator", "admin"]);

const principal = z.object({
  name: z.string(),
  role,
  via: z.enum(["console", "api", "host"]),
  /** Topics that the rights cover; absent: all. */
  topics: z.array(z.string()).optional(),
});

export const session = z.object({
  /** Null: not logged in. */
  principal: principal.nullable(),
  ways: z.object({ password: z.boolean(), link: z.boolean() }),
});

export const meta = z.object({
  version: z.string(),
  readOnly: z.boolean(),
  principal,
  /** Routes that this user may call; the app shows the others as forbidden. */
  permissions: z.array(z.string()),
  sources: z.array(
    z.object({
      name: z.string(),
      database: z.string(),
      table: z.string(),
      features: z.object({ lockVersion: z.boolean(), orderingKey: z.boolean(), delay: z.boolean() }),
    }),
  ),
  /** Clock of the first source's database, relative to this process. */
  clockOffsetMs: z.number(),
  now: z.string(),
});

export const pulse = z.object({
  sources: z.array(
    z.object({
      name: z.string(),
      states: stateCounts,
      problems: z.number(),
      /** Firing alerts and the highest severity; absent: none, or not evaluated. */
      alerts: z.object({ count: z.number(), severity: z.enum(["info", "warning", "critical"]) }).optional(),
      oldestWaitingMs: z.number().optional(),
      /** Absent: reachable. A code of `problem+json`. */
      away: z.string().optional(),
    }),
  ),
});

export const login = z.object({ name: z.string().max(200), password: z.string().max(1_000) });
export const linkToken = z.object({ token: z.string().max(200) });
