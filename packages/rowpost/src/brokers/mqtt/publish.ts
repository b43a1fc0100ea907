/**
 * Publishes messages one by one. Those of a key wait for the receipt of the previous one, since a
 * server that refuses one message accepts the next.
 */
import type { OutgoingMessage, PublishResult } from "../broker.ts";
import type { AbortScope } from "../publishing/abort-scope.ts";
import { AGAIN, createCall } from "../publishing/call.ts";
import { failed } from "../publishing/failures.ts";
import { bodyBytes, type PlacedMessage, startLanes } from "../publishing/lanes.ts";
import type { Window } from "../publishing/window.ts";
import { encode } from "./carry.ts";
import { outcomeOf } from "./failures.ts";
import type { Link } from "./link.ts";
import type { Settings } from "./options.ts";

const UNANSWERED = failed("unknown", "DEADLINE", "no receipt before the publish deadline");
const CLOSED = failed("unknown", "CLOSED", "the MQTT broker was closed before the receipt came");

export async function publishBatch(
  { settings, window }: { readonly settings: Settings; readonly window: Window },
  link: Link,
  batch: readonly OutgoingMessage[],
  scope: AbortScope,
): Promise<PublishResult[]> {
  const { prefix, maxBodyBytes, requireSubscribers } = settings;
  const release = link.use();
  const call = createCall<PlacedMessage>({
    count: batch.length,
    scope,
    window,
    carrier: ({ settle }) => ({
      hand(load, retry) {
        const message = load.items[0]?.message;
        if (message === undefined) return undefined;
        if (link.over !== undefined) return link.over;
        if (!link.hasRoom()) {
          link.onRoom(retry);
          return AGAIN;
        }
        const wire = encode(message, `${prefix}${message.topic}`, {
          maxBodyBytes,
          maxPacketBytes: link.maxPacketBytes,
        });
        if ("scope" in wire) return wire;
        link.send(wire, (answer) => {
          settle(load, "scope" in answer ? answer : outcomeOf(answer.packet, answer.receipt, requireSubscribers));
        });
        return undefined;
      },
      leave(_load, ending) {
        if (ending === "deadline") link.retire();
        return ending === "closed" ? CLOSED : UNANSWERED;
      },
    }),
  });
  try {
    startLanes(call, batch, { destinationOf: ({ topic }) => topic, bytesOf: bodyBytes });
    return await call.done;
  } finally {
    release();
  }
}
