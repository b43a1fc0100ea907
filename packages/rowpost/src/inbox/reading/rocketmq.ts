/** RocketMQ: messages of its clients. */
import { headersOf } from "../../brokers/rocketmq/carry.ts";
import type { ReceivedMessage } from "../identity.ts";
import { identityIn } from "./headers.ts";

/** A message view of `rocketmq-client-nodejs`, or of any other client. */
export interface RocketmqMessage {
  /** User properties: a map, or an object. */
  readonly properties: Iterable<readonly [string, string]> | Readonly<Record<string, string>>;
  /** Message id of the client. */
  readonly messageId?: string | undefined;
  /** Topic of the message. */
  readonly topic?: string | undefined;
}

/**
 * Identity of a message. `id` is its message id, as in the receipt. Throws `MissingIdentityError`.
 */
export function fromRocketmq({ messageId, properties, topic }: RocketmqMessage): ReceivedMessage {
  const entries = Symbol.iterator in properties ? properties : Object.entries(properties);
  return identityIn("RocketMQ", headersOf(entries), { id: messageId, topic });
}
