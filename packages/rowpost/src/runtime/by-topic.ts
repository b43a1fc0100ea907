/** A message of a batch, and its place there. */
interface Placed<Message> {
  readonly index: number;
  readonly orderingKey: string | undefined;
  readonly message: Message;
}

/** A batch divided by topic: topics in the order of their first message, messages in that of the batch. */
export function byTopic<Message extends { readonly topic: string; readonly orderingKey: string | undefined }>(
  batch: readonly Message[],
): Map<string, Placed<Message>[]> {
  const topics = new Map<string, Placed<Message>[]>();
  for (const [index, message] of batch.entries()) {
    const placed = { index, orderingKey: message.orderingKey, message };
    const messages = topics.get(message.topic);
    if (messages === undefined) topics.set(message.topic, [placed]);
    else messages.push(placed);
  }
  return topics;
}
