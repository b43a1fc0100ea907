/** Schemas for changes of many messages: rules, topics, operations. */
import { z } from "zod";
import { anyState, count, instant, instantOrNull, message, messageId, reason, state, text } from "./schemas.ts";

export const operationId = z.uuid({ error: "must be the id of an operation" });

const kind = z.enum(["retry", "resend", "suspend", "resume", "archive", "delete"]);

/** Selects messages; all given conditions must match. */
const filter = z.object({
  ids: z.array(messageId).max(1_000).optional(),
  topic: text(255).optional(),
  type: text(255).optional(),
  key: text(255).optional(),
  keyPrefix: text(255).optional(),
  orderingKey: text(255).optional(),
  states: z.array(state).max(6).optional(),
  reason: text(200).optional(),
  after: instant.optional(),
  before: instant.optional(),
});

export const previewBody = z.object({
  kind,
  filter: filter.default({}),
  /** Only messages with higher ids: the last one that an interrupted `resend` changed. */
  afterId: messageId.optional(),
  /** Instead of a filter: the failed messages of this cause, among the newest 10,000. */
  fingerprint: z
    .string()
    .regex(/^[0-9a-f]{16}$/, "must be the fingerprint of a cause")
    .optional(),
});

export const operation = z.object({
  id: z.string(),
  kind,
  state: z.enum(["preview", "running", "done", "cancelled", "failed"]),
  filter: z.record(z.string(), z.unknown()),
  total: count,
  /** When it is done these three add up to the total. */
  changed: z.number(),
  left: z.number(),
  vanished: z.number(),
  author: z.string(),
  reason: z.string(),
  error: z.string().nullable(),
  createdAt: z.string(),
  startedAt: instantOrNull,
  endedAt: instantOrNull,
});

export const preview = z.object({
  operation,
  /** The first 20. */
  samples: z.array(message),
  /** Dropped after this time unless started. */
  expiresInMs: z.number(),
});

export const startBody = z.object({
  preview: operationId,
  reason,
  until: instant.optional(),
});

export const operationAnswer = z.object({ operation });
export const operationList = z.object({ items: z.array(operation), asOf: z.string() });
export const operationDetail = z.object({
  operation,
  /** The first 200 of those left, which others had changed. */
  conflicts: z.array(z.object({ id: z.string(), state: anyState })),
  asOf: z.string(),
});

const scope = z.enum(["ordering_key", "topic", "type", "relay"]);
/** `*` with the scope relay. */
const scopeValue = text(255).refine((value) => value !== "", "must not be empty");

export const suspendScopeBody = z.object({ scope, value: scopeValue, reason, until: instant.optional() });
export const resumeScopeBody = z.object({ scope, value: scopeValue, reason });
export const resetBackoffBody = z.object({ topic: scopeValue, reason });
export const changedCount = z.object({ changed: z.number() });
