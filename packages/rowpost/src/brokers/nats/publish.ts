/**
 * Publishes messages one by one. Those of a key wait for the receipt of the previous one, since a
 * stream that refuses one message accepts the next.
 */

import type { OutgoingMessage, PublishFailed, PublishResult } from "../broker.ts";
import type { AbortScope } from "../publishing/abort-scope.ts";
import { type Call, type Carrier, createCall, type Handed, type Load } from "../publishing/call.ts";
import { failed } from "../publishing/failures.ts";
import { bodyBytes, type PlacedMessage, startLanes } from "../publishing/lanes.ts";
import type { Window } from "../publishing/window.ts";
import { destinationFailure } from "./failures.ts";
import type { Link, Outcome } from "./link.ts";
import type { Settings } from "./options.ts";
import type { Streams } from "./streams.ts";
import { encode, type SubjectOfTopic, subjectFor } from "./wire.ts";

export interface Publishing {
  readonly settings: Settings;
  readonly streams: Streams;
  readonly window: Window;
}

const CONNECTION_LOST = failed("connection", "CONNECTION_LOST", "the connection broke before this message's turn");
const UNANSWERED = failed("unknown", "DEADLINE", "no receipt before the publish deadline");
const CLOSED = failed("unknown", "CLOSED", "the NATS broker was closed before the receipt came");
const UNEXPLAINED = destinationFailure(
  "NO_RESPONDERS",
  "nobody takes the subject, and JetStream did not say why in time",
);

/** A stream's name may be as long; the sequence stands at the end. */
const MAX_RECEIPT_LENGTH = 255;

export function publishBatch(
  publishing: Publishing,
  link: Link,
  batch: readonly OutgoingMessage[],
  scope: AbortScope,
): Promise<PublishResult[]> {
  const call = createCall<PlacedMessage>({
    count: batch.length,
    scope,
    window: publishing.window,
    carrier: (own) => carrierOn(publishing, link, own),
  });
  startLanes(call, batch, { destinationOf: ({ topic }) => topic, bytesOf: bodyBytes });
  return call.done;
}

type Single = Load<PlacedMessage>;

function carrierOn({ settings, streams }: Publishing, link: Link, call: Call<PlacedMessage>): Carrier<PlacedMessage> {
  const subjects = new Map<string, SubjectOfTopic | PublishFailed>();
  /** For each message at the server, the function that makes the link forget it. */
  const withServer = new Map<Single, () => void>();
  const asking = new Set<Single>();

  function subjectOf(topic: string): SubjectOfTopic | PublishFailed {
    const known = subjects.get(topic) ?? subjectFor(topic, settings);
    subjects.set(topic, known);
    return known;
  }

  function onOutcome(load: Single, subject: string, outcome: Outcome): void {
    withServer.delete(load);
    if (outcome.kind === "stored") {
      call.settle(load, `${outcome.stream}:${outcome.sequence}`.slice(-MAX_RECEIPT_LENGTH));
    } else if (outcome.kind === "failed") {
      call.settle(load, outcome.failure);
    } else {
      // Nothing was stored. The question may take longer than this call has.
      asking.add(load);
      void streams.explain(link, subject, load.destination).then((failure) => call.settle(load, failure));
    }
  }

  return {
    hand(load): Handed {
      const [item] = load.items;
      if (item === undefined) return undefined;
      if (!link.isUsable()) return CONNECTION_LOST;
      const to = subjectOf(load.destination);
      if ("scope" in to) return to;
      const wire = encode(item.message, to, settings, link.maxPayload());
      if ("scope" in wire) return wire;
      const { subject, headers, body } = wire;
      let isSettled = false;
      const forget = link.send({
        subject,
        headers,
        body,
        settle(outcome) {
          isSettled = true;
          onOutcome(load, subject, outcome);
        },
      });
      // `send` settles at once if the connection is closed.
      if (!isSettled) withServer.set(load, forget);
      return undefined;
    },
    leave(load, ending) {
      withServer.get(load)?.();
      if (asking.has(load)) return UNEXPLAINED;
      return ending === "closed" ? CLOSED : UNANSWERED;
    },
  };
}
