/**
 * Table layout: names, state encoding, clock and optional columns of one local message table, from
 * which every dialect builds its statements. A missing column turns its feature off; using that
 * feature is a `ConfigurationError` at start-up.
 */

import type { BodyType } from "../../message/content-type.ts";
import type { MessageLimits } from "../../message/message.ts";
import type { MessageState } from "../../message/states.ts";

/** Column names. Those that may be undefined are optional features. */
export interface LayoutColumns {
  /** Primary key, ascending 64-bit numbers. */
  readonly id: string;
  /** First part of the identity. */
  readonly messageType: string;
  /** Second part of the identity; unique together with the type. */
  readonly messageKey: string;
  /** Destination on the broker. */
  readonly topic: string;
  /** Text of the body. */
  readonly messageBody: string;
  /** State, encoded by `TableLayout.states`. */
  readonly state: string;
  /** Failed attempts that count. */
  readonly retryCount: string;
  /** When a relay must look at the row again. */
  readonly nextRetryAt: string;
  /** Why the last attempt failed. */
  readonly failReason: string;
  /** When the row was written. */
  readonly gmtCreate: string;
  /** When the row was last changed. */
  readonly gmtModified: string;
  /** Start of the last attempt. */
  readonly lastRetryAt: string | undefined;
  /** JSON object of texts; undefined: no headers. */
  readonly headers: string | undefined;
  /** Media type of the body; undefined: all bodies are JSON, or text. */
  readonly contentType: string | undefined;
  /** Undefined: the table keeps no order. */
  readonly orderingKey: string | undefined;
  /**
   * Claims; needed for crash counting (rule: crash-counting). It can decrease, so it does not
   * identify a claim.
   */
  readonly deliveryCount: string | undefined;
  /** Delay, separate from retry (rule: delay-is-not-retry). */
  readonly deliverAt: string | undefined;
  /** The broker's receipt. */
  readonly messageId: string | undefined;
  /**
   * +1 on every change: the claim token (rule: claim-token), which operator actions compare too.
   */
  readonly lockVersion: string | undefined;
  /** When the receipt came. */
  readonly sentAt: string | undefined;
  /** When the consumer confirmed. */
  readonly consumedAt: string | undefined;
  /** Author of the row. */
  readonly createdBy: string | undefined;
  /** Author of the last change by hand. */
  readonly updatedBy: string | undefined;
  /** MySQL family: bytes that the settle frees, so that the row does not grow in its page. */
  readonly settlePad: string | undefined;
  /** MySQL family: the topic while the row waits, else NULL. Generated, for its index. */
  readonly waitingTopic: string | undefined;
  /** MySQL family: the ordering key until the row is finished, else NULL. Generated too. */
  readonly openKey: string | undefined;
}

/** One local message table. */
export interface TableLayout {
  /** `default`, `t_local_message`, `message_table`, or the user's own. */
  readonly name: string;
  /** Table name, without quotes. */
  readonly table: string;
  /** Database (MySQL) or schema (PostgreSQL) of the table; undefined = the connection's. */
  readonly schema: string | undefined;
  /**
   * Prefix of rowpost's own tables beside it: `<companion>_shard`, `_relay`, `_suspension`,
   * `_audit`, `_archive`. Default `local_message`.
   */
  readonly companion: string;
  /** Column names of the table. */
  readonly columns: LayoutColumns;
  /**
   * Value of each state in the column: numbers or words. Undefined: the table lacks this state
   * (t_local_message: consumed = 4, suspended = 5 extend the original numbers).
   */
  readonly states: Readonly<Record<MessageState, number | string>>;
  /**
   * `utc`: instants are UTC. `server`: as `NOW()` writes them in the server's zone
   * (CURRENT_TIMESTAMP in `t_local_message` and `message_table`).
   */
  readonly clock: "utc" | "server";
  /** Fraction digits of the DATETIME columns: 3, or 0 in `t_local_message` and `message_table`. */
  readonly fractionDigits: 0 | 3;
  /**
   * Type of the body column. `text`: characters. `json`: json or jsonb, for JSON only. `binary`:
   * bytea, BLOB or VARBINARY, with the bytes as sent.
   */
  readonly bodyType: BodyType;
  /** Type of the headers column. */
  readonly headersType: "text" | "json";
  /** What fits into its columns. */
  readonly limits: MessageLimits;
  /** Longest `fail_reason` in characters. */
  readonly failReasonLength: number;
  /** Longest `message_id` in characters. */
  readonly messageIdLength: number;
}
