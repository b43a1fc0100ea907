/** A message as lists show it. */
import type { MessageState } from "../message/states.ts";

/**
 * What a list shows of a message: all but its body and headers. Instants are ISO 8601 UTC texts;
 * ids decimal strings. Fields of columns that a layout lacks are undefined.
 */
export interface MessageSummary {
  /** Primary key, in decimal. */
  readonly id: string;
  /** First part of the identity. */
  readonly type: string;
  /** Second part of the identity. */
  readonly key: string;
  /** Destination on the broker. */
  readonly topic: string;
  /** `unknown`: the column holds a value that the layout does not name. */
  readonly state: MessageState | "unknown";
  /** The value in the column, when `state` is `unknown`. */
  readonly rawState: string;
  /** Media type of the body. */
  readonly contentType: string | null | undefined;
  /** Null: it has none. */
  readonly orderingKey: string | null | undefined;
  /** Counted attempts that failed. */
  readonly retryCount: number;
  /** Claims since the last settle. */
  readonly deliveryCount: number | undefined;
  /** Not before then. */
  readonly deliverAt: string | null | undefined;
  /** When a relay has to look at it again; null in `pending`: now. */
  readonly nextRetryAt: string | null;
  /** Id of the message that this one is set behind, as nextRetryAt tells it. */
  readonly behindId: string | undefined;
  /** Start of the last attempt. */
  readonly lastRetryAt: string | null | undefined;
  /** Why the last attempt failed, or what an operator said. */
  readonly failReason: string | null;
  /** The broker's receipt. */
  readonly messageId: string | null | undefined;
  /** Changes so far; what {@link SeenMessage} compares. */
  readonly lockVersion: number | undefined;
  /** When the receipt came. */
  readonly sentAt: string | null | undefined;
  /** When the consumer confirmed. */
  readonly consumedAt: string | null | undefined;
  /** Who wrote it. */
  readonly createdBy: string | null | undefined;
  /** Who changed it by hand. */
  readonly updatedBy: string | null | undefined;
  /** When it was written. */
  readonly gmtCreate: string;
  /** When it was last changed. */
  readonly gmtModified: string;
  /** It is in the archive table. */
  readonly archived: boolean;
}
