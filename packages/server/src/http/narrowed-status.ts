/** The status of a table for a user whose rights cover some topics only. */
import type { OutboxStatus } from "rowpost/admin";
import { reaches, type Topics } from "../access/topics.ts";
import { statesInPart } from "./status-view.ts";

/** Counts of the user's topics, as far as they were counted by topic. */
export function narrowedStatus(status: OutboxStatus, topics: Topics): OutboxStatus {
  if (topics === undefined) return status;
  const counts = status.counts.filter(({ topic }) => reaches(topics, topic));
  const isPart = statesInPart(status);
  return {
    ...status,
    counts,
    totals: status.totals.map(({ state }) => ({
      state,
      count: counts.filter((one) => one.state === state).reduce((sum, { count }) => sum + count, 0),
      atLeast: isPart.has(state),
    })),
    oldestDue: status.oldestDue && reaches(topics, status.oldestDue.topic) ? status.oldestDue : undefined,
    suspensions: status.suspensions.filter(
      ({ scope, value }) => scope === "relay" || (scope === "topic" && reaches(topics, value)),
    ),
    instances: status.instances.map(({ report, ...instance }) => ({
      ...instance,
      report: report && {
        ...report,
        restingTopics: report.restingTopics.filter(({ topic }) => reaches(topics, topic)),
        moreResting: 0,
        // It may be about another topic's message.
        lastError: undefined,
      },
    })),
  };
}
