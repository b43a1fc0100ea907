import { z } from "zod";
import { count, message } from "./schemas.ts";

const unconfirmedMessage = message.extend({
  /** Consumers that confirmed it, for a type that names several. */
  confirmedBy: z.array(z.string()),
  /** Consumers that recently confirmed others of its type, and not this one. */
  missing: z.array(z.string()),
});

const unknownConfirmation = z.object({
  type: z.string(),
  key: z.string(),
  consumer: z.string().optional(),
  error: z.string().optional(),
  times: z.number(),
  firstAt: z.string(),
  lastAt: z.string(),
  /** The message exists now; the earlier confirmation was not applied. */
  isThere: z.boolean(),
});

export const unconfirmedList = z.object({
  types: z.array(
    z.object({
      type: z.string(),
      overdue: count,
      waiting: count,
      /** Consumers that recently confirmed messages of it; empty: none that gave a name. */
      consumers: z.array(z.string()),
    }),
  ),
  /** The earliest deadline first: at most 200. */
  items: z.array(unconfirmedMessage),
  more: z.boolean(),
  /** Confirmations of unknown messages, the last first: at most 200. */
  unknown: z.array(unknownConfirmation),
  /** The database's clock, which deadlines use. */
  asOf: z.string(),
});

export const examination = z.object({
  /** Product and version; absent: unreachable. */
  server: z.string().optional(),
  found: z.array(
    z.object({
      id: z.string(),
      severity: z.enum(["error", "warning", "note"]),
      what: z.string(),
      why: z.string(),
      mend: z.string(),
      /** The part of `mend` that can be run as it is. */
      command: z.string().optional(),
    }),
  ),
  tookMs: z.number(),
  asOf: z.string(),
});
