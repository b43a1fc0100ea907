/** What a queue does beside its appends and its consumers, each on sessions of its own. */
import type { QueueSql } from "../databases/database.ts";
import { createGroups, type Groups } from "./groups/looking.ts";
import { createRecalling, type Recalling } from "./recalling/recall.ts";
import { createRetention, type Retention } from "./retention/dropping.ts";
import { createRewinding, type Rewinding } from "./rewinding/rewinding.ts";
import { createSearching, type Searching } from "./searching/searching.ts";
import { createVerifying, type Verifying } from "./verifying/verifying.ts";

/** One of each. */
export interface QueueRooms {
  /** Looks at groups, and changes them by hand. */
  readonly groups: Groups;
  /** Finds messages, and what became of one. */
  readonly searching: Searching;
  /** Takes messages back. */
  readonly recalling: Recalling;
  /** Moves the progress of groups. */
  readonly rewinding: Rewinding;
  /** Drops months. */
  readonly retention: Retention;
  /** Reads what was consumed, for the detector. */
  readonly verifying: Verifying;
  /** Ends their sessions. */
  readonly close: () => Promise<void>;
}

/** Makes them. No connection is opened before its first use. */
export function openRooms(sql: QueueSql): QueueRooms {
  const rooms = {
    groups: createGroups(sql),
    searching: createSearching(sql),
    recalling: createRecalling(sql),
    rewinding: createRewinding(sql),
    retention: createRetention(sql),
    verifying: createVerifying(sql),
  };
  return {
    ...rooms,
    close: async () => void (await Promise.all(Object.values(rooms).map((room) => room.close()))),
  };
}
