/**
 * Splits one publish call among brokers without breaking the order of a key whose messages go to several of them. (The relay never makes such a
 * call; others who publish through the contract may.)
 */
import type { OutgoingMessage } from "../broker.ts";

/** What one broker gets in one turn: messages with their places in the batch, in its order. */
export interface Share<Part> {
  readonly part: Part;
  readonly entries: { readonly index: number; readonly message: OutgoingMessage }[];
}

/** Turns, to be taken one after another; the shares of a turn go side by side. A key that changes its broker goes on in the next turn. */
export function turnsOf<Part>(
  batch: readonly OutgoingMessage[],
  partOf: (message: OutgoingMessage) => Part,
): Share<Part>[][] {
  const turns: Map<Part, Share<Part>>[] = [];
  const places = new Map<string, { readonly part: Part; readonly turn: number }>();
  for (const [index, message] of batch.entries()) {
    const part = partOf(message);
    const { orderingKey } = message;
    const before = orderingKey === undefined ? undefined : places.get(orderingKey);
    const turn = before === undefined ? 0 : before.part === part ? before.turn : before.turn + 1;
    if (orderingKey !== undefined) places.set(orderingKey, { part, turn });
    const shares = turns[turn] ?? new Map<Part, Share<Part>>();
    turns[turn] = shares;
    const share = shares.get(part);
    if (share === undefined) shares.set(part, { part, entries: [{ index, message }] });
    else share.entries.push({ index, message });
  }
  return turns.map((shares) => [...shares.values()]);
}
