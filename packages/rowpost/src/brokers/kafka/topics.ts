import { oneAtATime } from "../publishing/one-at-a-time.ts";
import type { TopicDescription } from "./driver.ts";
import { awayForNow, type Failure, messageFailure } from "./failures.ts";
import { isFailure } from "./sessions.ts";

export interface Topics {
  /** The topic, synchronously when cached. Never rejects. */
  find(topic: string): TopicDescription | Promise<TopicDescription | Failure>;
  /** Leader of the partition when the cluster was last asked; -1 if none. */
  readonly leaderOf: (topic: string, partition: number) => number;
  forget(topic: string): void;
}

export interface TopicsOptions {
  readonly describe: (topic: string) => Promise<TopicDescription | Failure>;
  readonly now: () => number;
}

/** New partitions are used after this time. Moved leaders show at once. */
const KEEP_MS = 60_000;
/** A topic seen less than this ago counts as away: a starting broker may not know it yet. */
const MISSED_MS = 60_000;
const MAX_TOPICS = 10_000;

interface Known {
  readonly description: TopicDescription;
  seenAt: number;
  isFresh: boolean;
}

export function createTopics({ describe, now }: TopicsOptions): Topics {
  const known = new Map<string, Known>();
  const shared = oneAtATime<TopicDescription | Failure>();

  async function ask(topic: string): Promise<TopicDescription | Failure> {
    const illegal = illegalName(topic);
    if (illegal !== undefined) return illegal;
    const answer = await describe(topic);
    if (!isFailure(answer)) {
      if (answer.leaders.length === 0)
        return missing(
          topic,
          messageFailure("UNKNOWN_TOPIC_OR_PARTITION", "the topic has no partitions", { retriable: true }),
        );
      if (known.size >= MAX_TOPICS) known.clear();
      known.set(topic, { description: answer, seenAt: now(), isFresh: true });
      return answer;
    }
    return answer.scope === "message" && answer.retriable ? missing(topic, answer) : answer;
  }

  function missing(topic: string, failure: Failure): Failure {
    const last = known.get(topic);
    return last !== undefined && now() - last.seenAt < MISSED_MS ? awayForNow(failure) : failure;
  }

  return {
    find(topic) {
      const found = known.get(topic);
      if (found?.isFresh === true && now() - found.seenAt < KEEP_MS) return found.description;
      return shared(topic, () => ask(topic));
    },
    leaderOf: (topic, partition) => known.get(topic)?.description.leaders[partition] ?? -1,
    forget(topic) {
      const found = known.get(topic);
      if (found !== undefined) found.isFresh = false;
    },
  };
}

function illegalName(topic: string): Failure | undefined {
  if (/^[A-Za-z0-9._-]{1,249}$/.test(topic) && topic !== "." && topic !== "..") return undefined;
  return messageFailure(
    "INVALID_TOPIC_EXCEPTION",
    `"${topic}" is no name of a Kafka topic: 1 to 249 letters, digits, ".", "_" and "-"`,
    { retriable: false },
  );
}
