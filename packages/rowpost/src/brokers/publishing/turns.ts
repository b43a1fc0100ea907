/**
 * Splits a call so that a key keeps its order even if its messages go to several topics or brokers
 * in parallel. The relay's calls nearly always are one turn.
 */
import type { OutgoingMessage, PublishResult } from "../broker.ts";
import type { AbortScope } from "./abort-scope.ts";
import { createResults } from "./results.ts";

/**
 * A key whose messages change to another part, which orders separately, continues in the next turn.
 */
export async function inTurns<Part>(
  batch: readonly OutgoingMessage[],
  scope: Pick<AbortScope, "aborted">,
  partOf: (message: OutgoingMessage) => Part,
  publish: (messages: readonly OutgoingMessage[]) => Promise<PublishResult[]>,
): Promise<PublishResult[]> {
  const turns = turnsOf(batch, partOf);
  if (turns === undefined) return await publish(batch);
  const results: (PublishResult | undefined)[] = [];
  const behind = createResults(batch.length);
  for (const turn of turns) {
    if (scope.aborted) break;
    const ready = turn.filter(({ placed }) => !behind.isBehind(placed));
    for (const { placed } of turn) if (behind.isBehind(placed)) behind.behind(placed);
    const answers = ready.length === 0 ? [] : await publish(ready.map(({ message }) => message));
    for (const [place, { placed }] of ready.entries()) {
      const answer = answers[place];
      results[placed.index] = answer;
      if (answer?.status !== "sent") behind.block(placed);
    }
  }
  return behind.all().map((rest, index) => results[index] ?? rest);
}

/** The unit within which a server keeps the order of a key. */
export const topicOf = ({ topic }: OutgoingMessage): string => topic;

interface Entry {
  readonly placed: { readonly index: number; readonly orderingKey: string | undefined };
  readonly message: OutgoingMessage;
}

function turnsOf<Part>(
  batch: readonly OutgoingMessage[],
  partOf: (message: OutgoingMessage) => Part,
): readonly (readonly Entry[])[] | undefined {
  const latest = new Map<string, { readonly part: Part; readonly turn: number }>();
  const turnOf: number[] = [];
  let last = 0;
  for (const message of batch) {
    const { orderingKey } = message;
    if (orderingKey === undefined) {
      turnOf.push(0);
      continue;
    }
    const part = partOf(message);
    const before = latest.get(orderingKey);
    const turn = before === undefined ? 0 : before.part === part ? before.turn : before.turn + 1;
    if (before === undefined || before.turn !== turn) latest.set(orderingKey, { part, turn });
    if (turn > last) last = turn;
    turnOf.push(turn);
  }
  if (last === 0) return undefined;
  const turns: Entry[][] = Array.from({ length: last + 1 }, () => []);
  for (const [index, message] of batch.entries()) {
    turns[turnOf[index] ?? 0]?.push({ placed: { index, orderingKey: message.orderingKey }, message });
  }
  return turns;
}
