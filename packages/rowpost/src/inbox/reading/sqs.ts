/** SQS: messages of ReceiveMessage. */
import { decodeSqsMessage, type SqsMessage } from "../../brokers/sqs/carry.ts";
import type { ReceivedMessage } from "../identity.ts";
import { identityIn } from "./headers.ts";

export type { SqsMessage } from "../../brokers/sqs/carry.ts";

/**
 * Identity of a message of `ReceiveMessage`, which must be called with `MessageAttributeNames:
 * ["All"]`. `id` is its MessageId, as in the receipt. Throws `MissingIdentityError`.
 */
export function fromSqs(message: SqsMessage): ReceivedMessage {
  return identityIn("SQS", decodeSqsMessage(message).headers, { id: message.MessageId });
}
