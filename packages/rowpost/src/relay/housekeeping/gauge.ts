import type { MessageState } from "../../message/states.ts";

export interface MessageGauge {
  readonly topic: string;
  readonly state: MessageState;
  readonly count: number;
  /** Only part was read: there may be more, and other topics. */
  readonly atLeast: boolean;
  /** Of a waiting one. */
  readonly oldestAgeMs: number;
}
