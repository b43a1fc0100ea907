/** An ordering key with a failed head and many followers, beside another topic. */
import { measureBeside } from "../isolation/beside.ts";
import { type Scenario, wanted } from "./scenario.ts";

const FOLLOWERS: Readonly<Record<string, number>> = { "30k": 30_000, "100k": 100_000 };

export const isolationKey: Scenario = {
  variants: Object.keys(FOLLOWERS),
  async measure(context) {
    for (const [name, standard] of Object.entries(FOLLOWERS)) {
      if (!wanted(context, name)) continue;
      const followers = context.options.messages ?? standard;
      const rows = { topic: "bad", orderingKey: "blocked" } as const;
      await measureBeside(context, "isolation-key", {
        variant: `${followers.toLocaleString("en-US")} behind a failed head`,
        seconds: 20,
        answers: {},
        async load(database) {
          await database.load({ kind: "failed", count: 1, first: 1, ...rows });
          await database.load({ kind: "waiting", count: followers, first: 2, ...rows });
        },
        heldBack: "topic = 'bad'",
      });
    }
  },
};
