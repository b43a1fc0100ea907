/** What the gauges of messages show. */
import type { MessageState } from "../../message/states.ts";

/** Messages of a topic in an unfinished state. */
export interface MessageGauge {
  readonly topic: string;
  readonly state: MessageState;
  readonly count: number;
  /** Of a waiting one. */
  readonly oldestAgeMs: number;
}
