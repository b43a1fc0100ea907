/** Names a consumer group. In a file of its own: the ports of features do not see the store. */

/** A consumer group of a topic. */
export interface GroupKey {
  readonly topic: string;
  readonly group: string;
}
