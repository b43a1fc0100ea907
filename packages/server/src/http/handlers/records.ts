import { reaches } from "../../access/topics.ts";
import { failureGroups } from "../../operations/failure-groups.ts";
import { createShared, type Shared } from "../../shared-answer.ts";
import type { ConsoleParts, HandlersOf } from "../call.ts";
import { decodeCursor, encodeCursor } from "../cursor.ts";

const FAILURES_MS = 10_000;
const SHOWN_GROUPS = 200;
const SHOWN_IDS = 100;

interface Causes extends Awaited<ReturnType<typeof failureGroups>> {
  /** ISO 8601 UTC. */
  readonly asOf: string;
}

export function recordHandlers({ sources }: ConsoleParts): HandlersOf<"failures" | "audit"> {
  const failures = new Map<string, Shared<Causes>>();
  for (const source of sources) {
    const load = async (): Promise<Causes> => {
      const asOf = new Date().toISOString();
      return { ...(await source.search(failureGroups)), asOf };
    };
    failures.set(source.name, createShared(FAILURES_MS, load));
  }

  return {
    async failures({ principal: { topics }, source }) {
      const shared = failures.get(source.name);
      if (shared === undefined) throw new Error(`no failures of ${source.name}`);
      const { asOf, complete, groups, looked } = await shared();
      const items = groups.filter(({ topic }) => reaches(topics, topic));
      const value = topics === undefined ? looked : items.reduce((sum, { count }) => sum + count, 0);
      const relation = complete ? "eq" : "gte";
      return { json: { items: items.slice(0, SHOWN_GROUPS), looked: { value, relation }, asOf } };
    },

    async audit({ principal, query: { cursor, limit, ...given }, source }) {
      const seesAll = principal.role === "admin" && principal.topics === undefined;
      const filter = seesAll ? given : { ...given, author: principal.name };
      const about = { ...filter, source: source.name };
      const beforeId = cursor === undefined ? undefined : decodeCursor(cursor, about).beforeId;
      // One more than shown tells whether there is another page.
      const entries = await source.records.audit({ filter, limit: limit + 1, beforeId });
      const shown = entries.slice(0, limit);
      const complete = entries.length <= limit;
      const next = complete ? null : encodeCursor({ place: "live", beforeId: shown.at(-1)?.id }, about);
      return {
        json: {
          items: shown.map(({ before, ids, ...entry }) => ({
            ...entry,
            ids: ids.slice(0, SHOWN_IDS),
            before: before.slice(0, SHOWN_IDS),
          })),
          next,
          searched: { complete, stopped: complete ? "end" : "limit", places: ["live"] },
          total: { value: shown.length, relation: complete && cursor === undefined ? "eq" : "gte" },
          asOf: new Date().toISOString(),
        },
      };
    },
  };
}
