/** Polls of idle consumers, for all groups in one statement. */
import { readCounters } from "../../../queue/consuming/statements.ts";
import type { Counters, GroupKey } from "../../../queue/store.ts";
import type { QueueSql } from "../../database.ts";
import { spelled } from "../cold.ts";
import { integer, text, textOrNull } from "../rows.ts";
import { createGathered } from "./gathered.ts";
import { lastIdsOf } from "./values.ts";
import type { WorkPool } from "./work-pool.ts";

export interface Looks {
  counters(key: GroupKey): Promise<Counters>;
  firstDue(key: GroupKey): Promise<ReadonlyMap<number, number>>;
}

/** A poll on a silent connection delays the next one, on another, at most this long. */
const PATIENCE_MS = 1_000;
const NOTHING: Counters = { lastIds: new Map(), paused: false };

/** A topic's counters as read, for running and for paused groups. */
interface Seen {
  readonly counters: string;
  readonly running: Counters;
  readonly paused: Counters;
}

export function createLooks({ statements, words }: Pick<QueueSql, "statements" | "words">, pool: WorkPool): Looks {
  const { redelivery } = statements;
  /** The same object while nothing changes. */
  const seen = new Map<string, Seen>();

  function see(topic: string, counters: string): Seen {
    const before = seen.get(topic);
    if (before?.counters === counters) return before;
    const lastIds = lastIdsOf(counters);
    const now = { counters, running: { lastIds, paused: false }, paused: { lastIds, paused: true } };
    seen.set(topic, now);
    return now;
  }

  return {
    counters: createGathered({
      waitMs: 0,
      patienceMs: PATIENCE_MS,
      async run(keys: readonly GroupKey[]) {
        const topics = [...new Set(keys.map(({ topic }) => topic))];
        const { rows } = await pool.run((session) => session.run(spelled(words, readCounters(topics))));
        const found = new Map<string, Seen>();
        const paused = new Set<string>();
        for (const row of rows) {
          const [topic, group] = [text(row, "topic"), textOrNull(row, "groupid")];
          if (group === null) found.set(topic, see(topic, text(row, "counters")));
          else paused.add(`${topic} ${group}`);
        }
        return keys.map(({ topic, group }) => {
          const its = found.get(topic);
          return (paused.has(`${topic} ${group}`) ? its?.paused : its?.running) ?? NOTHING;
        });
      },
    }),

    firstDue: createGathered({
      waitMs: 0,
      patienceMs: PATIENCE_MS,
      async run(keys: readonly GroupKey[]) {
        const { rows } = await pool.run((session) => session.run(redelivery.firstDue(keys)));
        return keys.map(
          ({ topic, group }) =>
            new Map(
              rows
                .filter((row) => text(row, "topic") === topic && text(row, "groupid") === group)
                .map((row) => [integer(row, "partitionno"), integer(row, "dueinms")]),
            ),
        );
      },
    }),
  };
}
