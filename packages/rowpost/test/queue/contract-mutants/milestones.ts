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
