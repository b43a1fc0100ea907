/** Stores that break a promise about groups, rewinds, and what people do by hand. */
import type { RewindRequest } from "../../../src/queue/rewinding/requests.ts";
import { beside, byHand, consuming, groups, type Mutant, type Mutation, rewinding } from "./mutation.ts";

/** Changes each request of a rewind or a dry run. */
function rewindsWith(change: (request: RewindRequest) => RewindRequest): Mutation {
  return rewinding(({ plan, rewind }) => ({
    plan: (request) => plan(change(request)),
    rewind: (request) => rewind(change(request)),
  }));
}

/** After each rewind. */
function afterRewind(work: (topic: string) => string): Mutation {
  return rewinding(({ rewind }, _store, database) => ({
    async rewind(request) {
      const done = await rewind(request);
      if (!("refused" in done)) await byHand(database, work(request.topic));
      return done;
    },
  }));
}

export const handMutants: readonly Mutant[] = [
  [
    "a group tells who holds a partition",
    groups(({ partitions }) => ({
      partitions: async (...of) => (await partitions(...of)).map((each) => ({ ...each, owner: null, label: null })),
    })),
    "groups: each partition tells",
  ],
  [
    "a group tells when the holder of a partition was last seen",
    groups(({ partitions }) => ({
      partitions: async (...of) => (await partitions(...of)).map((each) => ({ ...each, seenMs: null })),
    })),
    "groups: each partition tells",
  ],
  [
    "lag is counted over all months",
    groups(({ unread }) => ({ unread: (topic, m, r, l) => unread(topic, m.slice(1), r, l) })),
    "groups: what is unread",
  ],
  [
    "what waits behind its key is counted",
    groups(({ redeliveries }) => ({ redeliveries: async (...of) => ({ ...(await redeliveries(...of)), behind: 0 }) })),
    "groups: redeliveries are counted",
  ],
  [
    "pages go on behind the last id",
    groups(({ page }) => ({ page: (key, after, limit) => page(key, { ...after, id: "0" }, limit) })),
    "groups: redeliveries come in pages",
  ],
  [
    "a pause is of the first who asked",
    groups(({ setPause }) => ({
      async setPause(key, pause) {
        await setPause(key, undefined);
        return await setPause(key, pause);
      },
    })),
    "groups: a pause is told",
  ],
  [
    "a living group is not deleted",
    // Not 0: a member that was seen in this very millisecond would count as living.
    groups(({ deleteGroup }) => ({ deleteGroup: (key) => deleteGroup(key, -1) })),
    "deleteGroup: is refused",
  ],
  [
    "a deleted group's redeliveries go",
    groups(({ deleteGroup }, _store, database) => ({
      async deleteGroup(key, silentMs) {
        await byHand(
          database,
          `UPDATE message_redelivery SET consumer_group_id = 'kept' WHERE topic_id = '${key.topic}' AND consumer_group_id = '${key.group}'`,
        );
        const answer = await deleteGroup(key, silentMs);
        await byHand(
          database,
          `UPDATE message_redelivery SET consumer_group_id = '${key.group}' WHERE topic_id = '${key.topic}' AND consumer_group_id = 'kept'`,
        );
        return answer;
      },
    })),
    "deleteGroup: takes progress",
  ],
  [
    "a deleted group's name begins in a round of its own",
    groups(({ deleteGroup }, _store, database) => ({
      async deleteGroup(key, silentMs) {
        const answer = await deleteGroup(key, silentMs);
        await byHand(database, `DELETE FROM message_group WHERE topic_id = '${key.topic}'`);
        return answer;
      },
    })),
    "deleteGroup: a group of its name",
  ],
  [
    "a redelivered letter has all its attempts",
    consuming(({ due }) => ({
      due: async (...of) => (await due(...of)).map((each) => ({ ...each, firstAttempt: 0 })),
    })),
    "redeliver: dead letters",
  ],
  [
    "a redelivery says who did it",
    groups(({ redeliver }) => ({
      redeliver: (key, partition, ids, note) => redeliver(key, partition, ids, { ...note, author: "somebody" }),
    })),
    "redeliver: a record says",
  ],
  [
    "a removal says who did it",
    groups(({ remove }) => ({
      remove: (key, partition, removal) =>
        remove(key, partition, { ...removal, note: { ...removal.note, author: "somebody" } }),
    })),
    "remove: takes messages out",
  ],
  [
    "only dead letters are removed where only they are meant",
    groups(({ remove }) => ({
      remove: (key, partition, removal) => remove(key, partition, { ...removal, from: "waiting or dead" }),
    })),
    "remove: where only dead letters",
  ],
  [
    "a removed message releases its key",
    groups(({ remove }, _store, database) => ({
      async remove(key, partition, removal) {
        const done = await remove(key, partition, removal);
        await byHand(database, `DELETE FROM message_redelivery WHERE topic_id = '${key.topic}'`);
        return done;
      },
    })),
    "remove: the next one of its ordering key",
  ],
  [
    "a removal is part of the caller's transaction",
    beside(groups(({ remove }) => ({ removeIn: (_tx, key, partition, removal) => remove(key, partition, removal) }))),
    "removeIn: rolls back",
  ],
  [
    "a removal answers what it found under its lock",
    groups(({ remove, page }) => ({
      async remove(key, partition, removal) {
        const before = (await page(key, { partition, id: "0" }, 100)).map(({ id }) => id);
        const done = await remove(key, partition, removal);
        return done.map((each) => (before.includes(each.id) ? { ...each, result: "changed" } : each));
      },
    })),
    "remove: waits for a settle",
  ],
  [
    "a skipped message has a record",
    groups(({ skipHead }, _store, database) => ({
      async skipHead(key, id, note) {
        const answer = await skipHead(key, id, note);
        const rows = `topic_id = '${key.topic}' AND consumer_group_id = '${key.group}'`;
        await byHand(database, `UPDATE message_consumption SET epoch = epoch - 1 WHERE ${rows} AND epoch > 1`);
        return answer;
      },
    })),
    "skipHead: moves the progress",
  ],
  [
    "only the first one is skipped",
    groups(({ skipHead, partitions }) => ({
      async skipHead(key, id, note) {
        const [at] = await partitions(key.topic, key.group);
        return await skipHead(key, at?.nextId ?? id, note);
      },
    })),
    "skipHead: skips nothing but",
  ],
  [
    "a dry run moves nothing",
    rewinding(({ plan, rewind }) => ({
      async plan(request) {
        const answer = await plan(request);
        await rewind(request);
        return answer;
      },
    })),
    "rewind: a dry run",
  ],
  [
    "a rewind goes where it is told",
    rewindsWith((request) => ({ ...request, target: { kind: "start" } })),
    ...["rewind: to the start, to an id", "rewind: so many messages back", "rewind: to where another group is"],
    ...["rewind: one to where the group is", "rewind: a group that nobody knows"],
  ],
  [
    "a rewind begins a new epoch",
    afterRewind((topic) => `UPDATE message_consumption SET epoch = epoch - 1 WHERE topic_id = '${topic}'`),
    "rewind: begins a new round",
  ],
  [
    "a rewind begins a new round",
    afterRewind((topic) => `UPDATE message_consumption SET round = 0 WHERE topic_id = '${topic}'`),
    ...["rewind: begins a new round", "verify: each group tells"],
  ],
  [
    "only some partitions move",
    rewindsWith((request) => ({ ...request, partitions: undefined })),
    "rewind: only the partitions",
  ],
  [
    "a group that has moved is left",
    rewindsWith((request) => ({ ...request, expected: undefined })),
    "rewind: a group that has moved",
  ],
  [
    "the newest stands first in the log",
    rewinding(({ log }) => ({ log: async (...of) => (await log(...of)).toReversed() })),
    "rewind: the log tells",
  ],
  [
    "an undo does not replay again",
    rewindsWith((request) => (request.target.kind === "undo" ? { ...request, target: { kind: "start" } } : request)),
    "undo: what has been replayed",
  ],
  [
    "redeliveries that come again anyway are set aside",
    afterRewind((topic) => `UPDATE message_redelivery SET state = 0 WHERE topic_id = '${topic}' AND state >= 2`),
    "rewind: redeliveries behind the new place",
  ],
  [
    "what is not replayed is there again",
    afterRewind((topic) => `DELETE FROM message_redelivery WHERE topic_id = '${topic}' AND state >= 2`),
    "rewind: what was set aside and is not replayed",
  ],
  [
    "a rewind is taken back once",
    rewinding(({ rewind }, _store, database) => ({
      async rewind(request) {
        await byHand(database, `UPDATE message_rewind SET undo_of = NULL WHERE topic_id = '${request.topic}'`);
        return await rewind(request);
      },
    })),
    "undo: takes the last",
  ],
  [
    "a rewind is told how many are there again",
    rewinding(({ rewind }) => ({
      async rewind(request) {
        const done = await rewind(request);
        return "refused" in done ? done : { ...done, restored: done.restored + 1 };
      },
    })),
    "rewind: what was set aside and has been replayed",
  ],
  [
    "dropped months are not passed over unasked",
    rewindsWith((request) => ({ ...request, overDroppedMonths: true })),
    ...["rewind: over dropped months", "retention: a month that is marked"],
  ],
  [
    "the start is the first month that is there",
    rewindsWith((request) => (request.target.kind === "start" ? { ...request, target: { kind: "end" } } : request)),
    "rewind: to the start begins",
  ],
];
