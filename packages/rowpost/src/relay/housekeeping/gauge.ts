/** What the gauges of messages show. */
import type { MessageState } from "../../message/states.ts";

/** Messages of a topic in an unfinished state. */
export interface MessageGauge {
  readonly topic: string;
  readonly state: MessageState;
  readonly count: number;
  /** Only a part of the state was looked at: there may be more, and other topics. */
  readonly atLeast: boolean;
  /** Of a waiting one. */
  readonly oldestAgeMs: number;
}
