/** Appends each source id once: leaves out known ones, which keep their first id. */
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
  readonly fresh: readonly NumberedMessage[];
  /** Ids in message order: their own, or those of their first append. */
  readonly ids: readonly string[];
}

/**
 * Records the source ids in the transaction that appends. A parallel append waits at the first row,
 * since the key includes neither month nor partition.
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
  // A fixed order: otherwise two appends of the same ids in different orders deadlock.
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
