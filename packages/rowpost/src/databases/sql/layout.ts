/**
 * Table layout: the names, state encoding, clock and optional columns of one local message table.
 * The statements of every dialect are built from it, so a table made by the seed documents' own DDL
 * works as it is. A column that a layout lacks turns its feature off; asking for that feature is a
 * `ConfigurationError` at start-up.
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
  /** State, encoded as `TableLayout.states` says. */
  readonly state: string;
  /** Counted attempts that failed. */
  readonly retryCount: string;
  /** When a relay has to look at the row again. */
  readonly nextRetryAt: string;
  /** Why the last attempt failed. */
  readonly failReason: string;
  /** When the row was written. */
  readonly gmtCreate: string;
  /** When the row was last changed. */
  readonly gmtModified: string;
  /** Start of the last attempt. */
  readonly lastRetryAt: string | undefined;
  /** JSON object of texts; undefined: messages carry no headers. */
  readonly headers: string | undefined;
  /** Media type of the body; undefined: all bodies are JSON, or text. */
  readonly contentType: string | undefined;
  /** Undefined: the table keeps no order. */
  readonly orderingKey: string | undefined;
  /**
   * Claims; needed for crash counting (rule: crash-counting). Goes down too, so it tells no claim
   * from another.
   */
  readonly deliveryCount: string | undefined;
  /** Delay apart from retry (rule: delay-is-not-retry). */
  readonly deliverAt: string | undefined;
  /** The broker's receipt. */
  readonly messageId: string | undefined;
  /**
   * +1 on every change: the claim token of rule: claim-token, and what operator actions compare.
   */
  readonly lockVersion: string | undefined;
  /** When the receipt came. */
  readonly sentAt: string | undefined;
  /** When the consumer confirmed. */
  readonly consumedAt: string | undefined;
  /** Who wrote the row. */
  readonly createdBy: string | undefined;
  /** Who changed it by hand. */
  readonly updatedBy: string | undefined;
  /** MySQL family: bytes that the settle gives back so that the row does not grow in its page. */
  readonly settlePad: string | undefined;
  /** MySQL family: the topic while the row waits, else NULL. Generated; what its index holds. */
  readonly waitingTopic: string | undefined;
  /** MySQL family: the ordering key until the row is finished, else NULL. Generated, as well. */
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
  /** Its columns. */
  readonly columns: LayoutColumns;
  /**
   * Value of each state in the column: numbers, or words. Undefined: this table has no such state
   * (t_local_message: consumed = 4, suspended = 5 extend the seed's numbers).
   */
  readonly states: Readonly<Record<MessageState, number | string>>;
  /**
   * `utc`: instants are UTC. `server`: as `NOW()` in the server's own zone writes them (the seeds'
   * CURRENT_TIMESTAMP).
   */
  readonly clock: "utc" | "server";
  /** Fraction digits of the DATETIME columns: 3, or 0 in the seeds' tables. */
  readonly fractionDigits: 0 | 3;
  /**
   * What the column of bodies is made of. `text`: characters. `json`: json or jsonb, which takes
   * JSON alone. `binary`: bytea, BLOB or VARBINARY, which holds the bytes as they go out.
   */
  readonly bodyType: BodyType;
  /** What the column of headers is made of. */
  readonly headersType: "text" | "json";
  /** What fits into its columns. */
  readonly limits: MessageLimits;
  /** Longest `fail_reason` in characters. */
  readonly failReasonLength: number;
  /** Longest `message_id` in characters. */
  readonly messageIdLength: number;
}
