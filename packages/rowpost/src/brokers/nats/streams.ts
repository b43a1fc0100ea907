/**
 * Finds out why a subject has no subscriber. The server answers "no responders" for a missing
 * stream, for a stream without a leader, and for a JetStream that is off or starting. Only the
 * first is the message's fault, so JetStream is asked for the stream.
 */

import type { PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";
import { oneAtATime } from "../publishing/one-at-a-time.ts";
import { destinationFailure, failureOfError } from "./failures.ts";
import type { ApiAnswer, Link } from "./link.ts";

/** Takes one round trip; without a cluster leader there is no answer. */
const ASK_TIMEOUT_MS = 2000;

interface NamesAnswer {
  readonly error?: Parameters<typeof failureOfError>[0] | null | undefined;
  readonly streams?: readonly string[] | null | undefined;
}

export interface Streams {
  /** Never rejects. Runs once at a time for each subject. */
  explain(link: Link, subject: string, topic: string): Promise<PublishFailed>;
}

export function createStreams({ apiPrefix }: { readonly apiPrefix: string }): Streams {
  const shared = oneAtATime<PublishFailed>();
  const api = `${apiPrefix}.STREAM.NAMES`;
  return {
    explain: (link, subject, topic) =>
      shared(subject, async () => {
        const answer = await link.ask(api, { subject }, ASK_TIMEOUT_MS);
        return failureOf(answer, { subject, topic, api });
      }),
  };
}

interface Question {
  readonly subject: string;
  readonly topic: string;
  readonly api: string;
}

function failureOf(answer: ApiAnswer, { subject, topic, api }: Question): PublishFailed {
  if (answer.kind === "nobody") {
    const reason =
      "JetStream does not answer on this server: it is not enabled (nats-server -js), not for this account, or still starting";
    return failed("connection", "JETSTREAM_NOT_ENABLED", reason);
  }
  if (answer.kind === "denied") {
    const reason = `nobody takes the subject ${subject}, and whether a stream exists cannot be told: allow the user to publish to ${api}`;
    return destinationFailure("NO_RESPONDERS", reason);
  }
  if (answer.kind === "silence") {
    const reason = `nobody takes the subject ${subject} now, and JetStream does not say why: its cluster may have no leader`;
    return destinationFailure("NO_RESPONDERS", reason);
  }
  const { error, streams } = (answer.body ?? {}) as NamesAnswer;
  if (error !== undefined && error !== null) {
    const failure = failureOfError(error);
    return failure.scope === "message" ? destinationFailure(failure.code, failure.reason) : failure;
  }
  const [stream] = streams ?? [];
  if (stream !== undefined) {
    return destinationFailure(
      "STREAM_AWAY",
      `the stream ${stream}, which takes the subject ${subject}, has no leader now`,
    );
  }
  const advice = `nats stream add NAME --subjects '${subject}' --storage file`;
  const reason = `no stream takes the subject ${subject} of the topic ${topic}; create one: ${advice}`;
  return failed("message", "STREAM_NOT_FOUND", reason, { absent: "missing" });
}
