/** The rooms of a queue, each with its own sessions. */
import type { QueueSql } from "../databases/database.ts";
import { createGroups, type Groups } from "./groups/looking.ts";
import { createRecalling, type Recalling } from "./recalling/recall.ts";
import { createRetention, type Retention } from "./retention/dropping.ts";
import { createRewinding, type Rewinding } from "./rewinding/rewinding.ts";
import { createSearching, type Searching } from "./searching/searching.ts";
import { createVerifying, type Verifying } from "./verifying/verifying.ts";

export interface QueueRooms {
  readonly groups: Groups;
  readonly searching: Searching;
  readonly recalling: Recalling;
  readonly rewinding: Rewinding;
  readonly retention: Retention;
  /** Reads what was consumed, for the detector. */
  readonly verifying: Verifying;
  /** Ends their sessions. */
  readonly close: () => Promise<void>;
}

/** Opens no connection before its first use. */
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
