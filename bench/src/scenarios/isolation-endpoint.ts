/** A topic whose endpoint never answers, or late, beside a topic with a healthy endpoint. */
import { measureBeside, type Neighbor } from "../isolation/beside.ts";
import { type Scenario, wanted } from "./scenario.ts";

const SLOW_MESSAGES = 40;

const NEIGHBORS: Readonly<Record<string, Neighbor>> = {
  hung: {
    variant: "never answers, one message every 2 s",
    seconds: 30,
    publishTimeoutMs: 3_000,
    answers: { bad: { afterMs: "never" } },
    offers: (second) => (second % 2 === 0 ? ["bad"] : []),
  },
  slow: {
    variant: `answers after 5 s, ${SLOW_MESSAGES} messages every 10 s`,
    seconds: 30,
    answers: { bad: { afterMs: 5_000 } },
    offers: (second) => (second % 10 === 3 ? Array.from({ length: SLOW_MESSAGES }, () => "bad") : []),
  },
  missing: {
    variant: "answers 404, 500 messages wait",
    seconds: 20,
    answers: { bad: { status: 404 } },
    load: (database) => database.load({ kind: "waiting", count: 500, first: 1, topic: "bad" }),
  },
};

export const isolationEndpoint: Scenario = {
  variants: Object.keys(NEIGHBORS),
  async measure(context) {
    for (const [name, neighbor] of Object.entries(NEIGHBORS)) {
      if (wanted(context, name)) await measureBeside(context, "isolation-endpoint", neighbor);
    }
  },
};
