/**
 * Why nobody takes a subject. The server says the same ("no responders") for a stream that does not
 * exist, a stream whose leader is being elected, and a JetStream that is off or starting; only the
 * first is a message's own trouble. So JetStream is asked which stream it is.
 */

import type { PublishFailed } from "../broker.ts";
import { failed } from "../publishing/failures.ts";
import { oneAtATime } from "../publishing/one-at-a-time.ts";
import { destinationFailure, failureOfError } from "./failures.ts";
import type { ApiAnswer, Link } from "./link.ts";

/** A question takes a round trip; without a leader of the cluster nobody answers. */
const ASK_TIMEOUT_MS = 2000;

interface NamesAnswer {
  readonly error?: Parameters<typeof failureOfError>[0] | null | undefined;
  readonly streams?: readonly string[] | null | undefined;
}

export interface Streams {
  /** Why nobody took it. Never rejects; one question at a time for a subject. */
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
