import { z } from "zod";
import { RULE_NAMES, SEVERITIES } from "../alerts/rules.ts";
import { reason, text } from "./schemas.ts";

const HOUR_MS = 3_600_000;

export const silenceId = z.uuid({ error: "must be the id of a silence" });

export const silenceBody = z.object({
  reason,
  /** Absent: every rule. */
  rule: z.enum(RULE_NAMES).optional(),
  subject: text(255).optional(),
  forMs: z
    .number()
    .int()
    .min(1_000)
    .max(7 * 24 * HOUR_MS)
    .default(HOUR_MS),
});

export const silenceAdded = z.object({ id: z.string() });
export const silenceEnded = z.object({ ended: z.string() });

const channelAnswer = z.object({
  at: z.string(),
  ok: z.boolean(),
  answer: z.string(),
});

export const channelTested = channelAnswer;

const alert = z.object({
  rule: z.string(),
  subject: z.string(),
  severity: z.enum(SEVERITIES),
  /** `waiting`: it must hold for longer before it fires. */
  phase: z.enum(["firing", "waiting"]),
  title: z.string(),
  why: z.string(),
  command: z.string(),
  peak: z.string(),
  since: z.string(),
  forMs: z.number(),
  messageId: z.string().optional(),
  silence: z.string().optional(),
});

export const alertList = z.object({
  items: z.array(alert),
  /** Past alerts, the newest first; at most 50. */
  past: z.array(
    z.object({
      rule: z.string(),
      subject: z.string(),
      severity: z.enum(SEVERITIES),
      since: z.string(),
      until: z.string(),
      forMs: z.number(),
    }),
  ),
  /** Active silences and those ended within 30 days; the newest first, at most 100. */
  silences: z.array(
    z.object({
      id: z.string(),
      rule: z.string().optional(),
      subject: z.string().optional(),
      author: z.string(),
      reason: z.string(),
      createdAt: z.string(),
      endsAt: z.string(),
      active: z.boolean(),
    }),
  ),
  /** All rules, with names in the page's language. */
  rules: z.array(z.object({ rule: z.enum(RULE_NAMES), name: z.string() })),
  channels: z.array(
    z.object({
      name: z.string(),
      canTest: z.boolean(),
      last: channelAnswer.optional(),
    }),
  ),
  /** A process evaluates alerts; otherwise the state may be outdated. */
  isEvaluated: z.boolean(),
  ageMs: z.number().optional(),
  asOf: z.string(),
});
