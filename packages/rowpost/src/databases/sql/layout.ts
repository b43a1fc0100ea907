/**
 * Table layout: the names, state encoding, clock and optional columns of one local message table.
 * The statements of every dialect are built from it, so a table made by the seed documents' own DDL
 * works as it is. A column that a layout lacks turns its feature off; asking for that feature is a
 * `ConfigurationError` at start-up.
 */

import type { MessageLimits } from "../../message/message.ts";
import type { MessageState } from "../../message/states.ts";

/** Column names. Those that may be undefined are optional features. */
export interface LayoutColumns {
  readonly id: string;
  readonly messageType: string;
  readonly messageKey: string;
  readonly topic: string;
  readonly messageBody: string;
  readonly state: string;
  readonly retryCount: string;
  readonly nextRetryAt: string;
  readonly failReason: string;
  readonly gmtCreate: string;
  readonly gmtModified: string;
  /** Start of the last attempt. */
  readonly lastRetryAt: string | undefined;
  readonly headers: string | undefined;
  readonly contentType: string | undefined;
  readonly orderingKey: string | undefined;
  /**
   * Claims; needed for crash counting (rule: crash-counting). Goes down too, so it tells no claim
   * from another.
   */
  readonly deliveryCount: string | undefined;
  /** Delay apart from retry (rule: delay-is-not-retry). */
  readonly deliverAt: string | undefined;
  readonly messageId: string | undefined;
  /**
   * +1 on every change: the claim token of rule: claim-token, and what operator actions compare.
   */
  readonly lockVersion: string | undefined;
  readonly sentAt: string | undefined;
  readonly consumedAt: string | undefined;
  readonly createdBy: string | undefined;
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
   * `_archive`. Default `local_message`.
   */
  readonly companion: string;
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
  readonly limits: MessageLimits;
  /** Longest `fail_reason` in characters. */
  readonly failReasonLength: number;
  /** Longest `message_id` in characters. */
  readonly messageIdLength: number;
}
