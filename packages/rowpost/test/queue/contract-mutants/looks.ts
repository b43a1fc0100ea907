/** Stores that break a promise about searching, retention and verifying. */
import type { SearchRequest } from "../../../src/queue/searching/requests.ts";
import { byHand, type Mutant, type Mutation, retention, searching, verifying } from "./mutation.ts";

function searchesWith(change: (request: SearchRequest) => SearchRequest): Mutation {
  return searching(({ search }) => ({ search: (request) => search(change(request)) }));
}

export const lookMutants: readonly Mutant[] = [
  [
    "a range has both of its ends",
    searchesWith((request) => ({ ...request, fromId: String(BigInt(request.fromId) + 1n) })),
    "search: finds all messages",
  ],
  [
    "the newest comes first",
    searching(({ search }) => ({
      async search(request) {
        const found = await search(request);
        return found && { ...found, messages: found.messages.toReversed() };
      },
    })),
    ...["search: finds all messages", "search: what matches is picked"],
  ],
  [
    "a key is compared byte for byte, along its index",
    searchesWith((request) => ({
      ...request,
      key: undefined,
      matches: ({ key }) => request.key === undefined || key?.toLowerCase() === request.key,
    })),
    "search: finds the messages of a key",
  ],
  [
    "a page tells where it ended",
    searching(({ search }) => ({
      async search(request) {
        const found = await search(request);
        return found && { ...found, nextId: undefined };
      },
    })),
    ...["search: a page is full", "search: one whose time is over"],
  ],
  [
    "all of a month is looked at",
    searchesWith((request) => ({ ...request, timeLimitMs: 0 })),
    "search: what matches is picked",
  ],
  [
    "dropped months are told",
    searching(({ search }) => ({
      async search(request) {
        const found = await search(request);
        return found && { ...found, dropped: [] };
      },
    })),
    "search: tells of the range",
  ],
  [
    "an unknown topic is told",
    searching(({ search }) => ({
      search: async (request) =>
        (await search(request)) ?? {
          messages: [],
          rows: 0,
          stopped: "end",
          nextId: undefined,
          months: [],
          dropped: [],
          absent: [],
        },
    })),
    "search: a topic that is not there",
  ],
  [
    "every attempt is told",
    searching(({ detail }) => ({
      async detail(topic, id) {
        const found = await detail(topic, id);
        return found && "entries" in found ? { ...found, entries: found.entries.slice(0, 1) } : found;
      },
    })),
    "detail: tells of a message every attempt",
  ],
  [
    "a batch's record is told of its messages",
    searching(({ detail }) => ({
      async detail(topic, id) {
        const found = await detail(topic, id);
        if (found === undefined || !("entries" in found)) return found;
        return { ...found, entries: found.entries.filter(({ batch }) => batch === undefined) };
      },
    })),
    "detail: a batch's record",
  ],
  [
    "a dropped month is told of its messages",
    searching(({ detail }) => ({
      async detail(topic, id) {
        const found = await detail(topic, id);
        return found !== undefined && "message" in found ? found : undefined;
      },
    })),
    ...["detail: tells a message of a dropped month", "retention: a month that is marked"],
  ],
  [
    "a month that is needed is kept",
    retention(({ begin }) => ({ begin: (request) => begin({ ...request, force: true }) })),
    "retention: a month that groups have not read",
  ],
  [
    "a month that nobody needs is dropped",
    retention(({ begin }) => ({
      begin: async (request) => (request.force ? await begin(request) : { refused: "needed", groups: [] }),
    })),
    "retention: a month that everybody has read",
  ],
  [
    "the current month is kept",
    retention(({ begin }) => ({
      async begin(request) {
        const answer = await begin(request);
        return "refused" in answer && answer.refused === "not over" ? { begun: true, isThere: true } : answer;
      },
    })),
    "retention: the current month",
  ],
  [
    "one call is at a month",
    retention(({ begin, release }, _store, database) => ({
      async begin(request) {
        const stale = `UPDATE message_dropped_month SET gmt_modified = '1970-01-01 00:00:00' WHERE topic_id = '${request.topic}'`;
        await byHand(database, stale);
        return await begin(request);
      },
      release,
    })),
    "retention: while somebody is at a month",
  ],
  [
    "a mark is taken back by who has set it",
    retention(({ takeBack }, _store, database) => ({
      async takeBack(request) {
        await takeBack(request);
        await byHand(database, `DELETE FROM message_dropped_month WHERE topic_id = '${request.topic}'`);
      },
    })),
    "retention: a mark that is taken back",
  ],
  [
    "what would come again of a month goes with it",
    retention(({ finish }) => ({
      async finish(request) {
        await finish(request);
        return { redeliveries: 0 };
      },
    })),
    "retention: dropping takes",
  ],
  [
    "whoever goes on is told that the tables are gone",
    retention(({ begin }) => ({
      async begin(request) {
        const answer = await begin(request);
        return "begun" in answer ? { ...answer, isThere: true } : answer;
      },
    })),
    "retention: whoever goes on",
  ],
  [
    "an archive is whole",
    retention(({ rows }) => ({
      async *rows(...of) {
        for await (const some of rows(...of)) {
          yield some;
          return;
        }
      },
    })),
    "retention: all rows of a month",
  ],
  [
    "one in so long is elected",
    retention(() => ({ elect: () => Promise.resolve(true) })),
    "retention: of those that look after",
  ],
  [
    "what a settle under way writes is seen before a month is dropped",
    retention(({ begin }, store) => ({
      async begin(request) {
        const before = await store.groups.partitions(request.topic);
        const answer = await begin(request);
        const isUnread = before.some(({ nextId }) => nextId === "0");
        return isUnread ? { refused: "needed", groups: [] } : answer;
      },
    })),
    "retention: whoever is about to drop",
  ],
  [
    "the detector knows where a group began",
    verifying(({ groups }) => ({
      groups: async (topic) => (await groups(topic)).map((each) => ({ ...each, beginId: "0" })),
    })),
    "verify: each group tells",
  ],
  [
    "months that are being dropped are none of the detector's",
    verifying((_sound, store) => ({ months: (topic) => store.topics.months(topic) })),
    "verify: months that are being dropped",
  ],
  [
    "the detector knows what comes again",
    verifying(({ chunk }) => ({
      chunk: async (request) => (await chunk(request)).map((each) => ({ ...each, again: false })),
    })),
    "verify: a range of messages",
  ],
  [
    "the detector knows records of batches",
    verifying(({ chunk }) => ({
      chunk: async (request) =>
        (await chunk(request)).map((each) => ({
          ...each,
          records: each.records.map(({ round }) => ({ round, batch: undefined })),
        })),
    })),
    "verify: a range of messages",
  ],
  [
    "places are counted in one partition",
    verifying(({ before }) => ({ before: (request) => before({ ...request, places: request.places + 1 }) })),
    "verify: the message so many places before",
  ],
];
