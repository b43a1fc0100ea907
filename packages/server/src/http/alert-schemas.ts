/** What goes in and comes out of the routes about alerts. */
import { z } from "zod";
import { RULE_NAMES, SEVERITIES } from "../alerts/rules.ts";
import { reason, text } from "./schemas.ts";

const HOUR_MS = 3_600_000;

export const silenceId = z.uuid({ error: "must be the id of a silence" });

export const silenceBody = z.object({
  reason,
  /** Absent: every rule. */
  rule: z.enum(RULE_NAMES).optional(),
  /** Topic, type or broker; absent: all. */
  subject: text(255).optional(),
  /** It ends by itself after this long; seven days at most. */
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
  /** It has taken the notice. */
  ok: z.boolean(),
  /** What it said; without secrets. */
  answer: z.string(),
});

export const channelTested = channelAnswer;

const alert = z.object({
  rule: z.string(),
  /** Topic, type, broker, or what is suspended; empty: the whole table. */
  subject: z.string(),
  severity: z.enum(SEVERITIES),
  /** `waiting`: it has to hold for longer before anybody is told. */
  phase: z.enum(["firing", "waiting"]),
  title: z.string(),
  why: z.string(),
  /** What to begin with. */
  command: z.string(),
  /** At its worst. */
  peak: z.string(),
  since: z.string(),
  forMs: z.number(),
  /** Of the message that it is about. */
  messageId: z.string().optional(),
  /** Id of the silence by which nobody is told. */
  silence: z.string().optional(),
});

export const alertList = z.object({
  /** The gravest first. */
  items: z.array(alert),
  /** What was, the newest first; at most 50. */
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
  /** Active ones, and those that ended within 30 days; the newest first, at most 100. */
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
  /** All that there are, with their names in the language of the page. */
  rules: z.array(z.object({ rule: z.enum(RULE_NAMES), name: z.string() })),
  channels: z.array(
    z.object({
      name: z.string(),
      /** This console can send a test to it. */
      canTest: z.boolean(),
      /** How its last notice went; absent: it has got none. */
      last: channelAnswer.optional(),
    }),
  ),
  /** A process evaluates alerts; else what is shown may be over long since. */
  isEvaluated: z.boolean(),
  /** How old this knowledge is; absent: nobody has ever looked. */
  ageMs: z.number().optional(),
  asOf: z.string(),
});
