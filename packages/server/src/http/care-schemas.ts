/** What comes out of the pages that look for what went wrong: unconfirmed messages, the doctor. */
import { z } from "zod";
import { count, message } from "./schemas.ts";

const unconfirmedMessage = message.extend({
  /** Who has confirmed it, of a type that names several consumers. */
  confirmedBy: z.array(z.string()),
  /** Who has confirmed others of its type lately, and not this one. */
  missing: z.array(z.string()),
});

const unknownConfirmation = z.object({
  type: z.string(),
  key: z.string(),
  consumer: z.string().optional(),
  /** Why it could not be handled; absent: it was consumed. */
  error: z.string().optional(),
  times: z.number(),
  firstAt: z.string(),
  lastAt: z.string(),
  /** The message is there now; what was said before was not applied. */
  isThere: z.boolean(),
});

export const unconfirmedList = z.object({
  types: z.array(
    z.object({
      type: z.string(),
      /** Their deadline has come, or a consumer has given up. */
      overdue: count,
      /** Their deadline is ahead. */
      waiting: count,
      /** Who has confirmed messages of it lately; empty: nobody who gave a name. */
      consumers: z.array(z.string()),
    }),
  ),
  /** The earliest deadline first: at most 200. */
  items: z.array(unconfirmedMessage),
  /** There are more than these. */
  more: z.boolean(),
  /** Confirmations of messages that are not there, the last first: at most 200. */
  unknown: z.array(unknownConfirmation),
  /** The database's: deadlines go by it. */
  asOf: z.string(),
});

export const examination = z.object({
  /** Product and version; absent: it could not be reached. */
  server: z.string().optional(),
  /** The gravest first. */
  found: z.array(
    z.object({
      id: z.string(),
      severity: z.enum(["error", "warning", "note"]),
      what: z.string(),
      why: z.string(),
      /** A statement, a command, or a sentence that says what to do. */
      mend: z.string(),
      /** The part of `mend` that can be run as it is. */
      command: z.string().optional(),
    }),
  ),
  tookMs: z.number(),
  asOf: z.string(),
});
