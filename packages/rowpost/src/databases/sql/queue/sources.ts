/** Appending each source id once: what is known already is left out, and keeps its first id. */
import type { QueuedMessage } from "../../../queue/store.ts";
import type { Statement } from "../../../transactions/executor.ts";
import { lowerCased, type Row, text } from "../rows.ts";
import type { SourceStatements } from "./statements.ts";
import type { Steps } from "./steps.ts";

export interface NumberedMessage {
  readonly id: string;
  readonly message: QueuedMessage;
}

export interface Sorted {
  /** Those that are to be inserted. */
  readonly fresh: readonly NumberedMessage[];
  /** The id of each, in the order of the messages: its own, or that of its first append. */
  readonly ids: readonly string[];
}

/**
 * Takes note of the source ids, in the transaction that appends. Whoever does the same at the same
 * time waits at the first one's row: the key is of no month and of no partition.
 */
export function* leaveOutKnown(
  statementsFor: (sources: Parameters<SourceStatements["putSources"]>[1]) => readonly Statement[],
  numbered: readonly NumberedMessage[],
): Steps<Sorted> {
  const wanted = new Map<string, string>();
  for (const { id, message } of numbered) {
    if (message.sourceId !== null && !wanted.has(message.sourceId)) wanted.set(message.sourceId, id);
  }
  if (wanted.size === 0) return { fresh: numbered, ids: numbered.map(({ id }) => id) };
  // In one order, whoever appends: else two with the same in another order wait for each other.
  const sources = [...wanted].sort(([left], [right]) => (left < right ? -1 : 1));
  let rows: readonly Row[] = [];
  for (const statement of statementsFor(sources.map(([sourceId, messageId]) => ({ sourceId, messageId })))) {
    ({ rows } = yield { make: () => statement });
  }
  const known = new Map(rows.map(lowerCased).map((row) => [text(row, "sourceid"), text(row, "messageid")]));
  const idOf = ({ id, message }: NumberedMessage): string => {
    const first = message.sourceId === null ? id : known.get(message.sourceId);
    if (first === undefined) throw new Error("a source id was put and not found");
    return first;
  };
  return { fresh: numbered.filter((each) => idOf(each) === each.id), ids: numbered.map(idOf) };
}
