/** Stores that break a promise about the milestones that messages are counted by. */
import { byHand, type Mutant, type Mutation, retention, rewinding } from "./mutation.ts";

/** Behind each setting. */
function afterSetting(work: (topic: string) => string): Mutation {
  return rewinding(({ setMilestones }, _store, database) => ({
    async setMilestones(request) {
      const month = await setMilestones(request);
      await byHand(database, work(request.topic));
      return month;
    },
  }));
}

export const milestoneMutants: readonly Mutant[] = [
  [
    "each is the 5,000th behind the last one",
    afterSetting(
      (topic) => `UPDATE message_milestone SET message_id = message_id + 4194304 WHERE topic_id = '${topic}'`,
    ),
    ...["milestones: so many messages back", "milestones: every 5,000th"],
  ],
  [
    "setting them ends when it is over",
    rewinding(({ setMilestones }) => ({
      setMilestones: (request) => setMilestones({ ...request, isOver: () => false }),
    })),
    "milestones: what is over",
  ],
  [
    "those of a topic that was deleted count nothing",
    rewinding(({ plan }, _store, database) => ({
      async plan(request) {
        const planned = await plan(request);
        if ("refused" in planned) return planned;
        const text = `SELECT partition_no FROM message_milestone WHERE topic_id = '${request.topic}'`;
        const { rows } = await database.transaction((tx) => tx.run({ name: "all", text, params: [] }));
        const partitions = planned.partitions.map((each) => ({
          ...each,
          messages: each.messages + 5_000 * rows.length,
        }));
        return { ...planned, partitions };
      },
    })),
    "milestones: what a deleted topic",
  ],
  [
    "none is left of a month that is dropped",
    retention(({ finish }, _store, database) => ({
      async finish(request) {
        const done = await finish(request);
        const values = `('${request.topic}', 0, 1)`;
        await byHand(database, `INSERT INTO message_milestone (topic_id, partition_no, message_id) VALUES ${values}`);
        return done;
      },
    })),
    "milestones: go with",
  ],
];
