/** A million waiting rows of a topic whose destination refuses, before those of a healthy topic. */
import { measureBeside } from "../isolation/beside.ts";
import type { Scenario } from "./scenario.ts";

const BACKLOG = 1_000_000;

export const isolationBacklog: Scenario = {
  variants: [],
  async measure(context) {
    const backlog = context.options.messages ?? BACKLOG;
    await measureBeside(context, "isolation-backlog", {
      variant: `${backlog.toLocaleString("en-US")} rows of a topic that answers 429`,
      seconds: 30,
      answers: { bad: { status: 429 } },
      load: (database) => database.load({ kind: "waiting", count: backlog, first: 1, topic: "bad" }),
      heldBack: "topic = 'bad'",
    });
  },
};
