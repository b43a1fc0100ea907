/** Publishes each message as a request, as many at once as the window allows. */
import { describeError } from "../../runtime/errors.ts";
import type { OutgoingMessage, PublishFailed, PublishResult } from "../broker.ts";
import type { AbortScope } from "../publishing/abort-scope.ts";
import { type Call, createCall, type Handed, type Load } from "../publishing/call.ts";
import { failed } from "../publishing/failures.ts";
import { bodyBytes, type PlacedMessage, startLanes } from "../publishing/lanes.ts";
import type { Window } from "../publishing/window.ts";
import type { Connections } from "./connections.ts";
import type { RunningExchange } from "./exchange.ts";
import { outcomeOf, requestOf } from "./requests.ts";
import type { HttpSettings } from "./settings.ts";
import type { Target } from "./target.ts";

export interface Publishing {
  readonly settings: HttpSettings;
  readonly connections: Connections;
  readonly window: Window;
}

export async function publishBatch(
  publishing: Publishing,
  batch: readonly OutgoingMessage[],
  scope: AbortScope,
): Promise<PublishResult[]> {
  const { settings, window } = publishing;
  const targets = new Map<string, Target | PublishFailed>();
  const running = new Set<RunningExchange>();

  function targetOf(topic: string): Target | PublishFailed {
    const target = targets.get(topic) ?? settings.target(topic);
    targets.set(topic, target);
    return target;
  }

  function destinationOf({ topic }: OutgoingMessage): string {
    const target = targetOf(topic);
    return "label" in target ? target.label : topic;
  }

  function hand(call: Call<PlacedMessage>, load: Load<PlacedMessage>): Handed {
    const message = load.items[0]?.message;
    if (message === undefined) return undefined;
    const target = targetOf(message.topic);
    if (!("label" in target)) return target;
    const request = requestOf(message, target, settings);
    if ("status" in request) return request;
    let started: RunningExchange;
    try {
      started = publishing.connections.start(request);
    } catch (error) {
      // node:http refuses a request it cannot write before it sends anything.
      return failed("message", "INVALID_REQUEST", describeError(error), { retriable: false });
    }
    running.add(started);
    void started.done.then((exchange) => {
      running.delete(started);
      call.settle(load, outcomeOf(exchange, message, target, settings));
    });
    return undefined;
  }

  const call = createCall<PlacedMessage>({
    count: batch.length,
    scope,
    window,
    // No `leave`: only the end of a request shows whether it was handed over or answered.
    carrier: (own) => ({ hand: (load) => hand(own, load) }),
  });
  scope.onAbort(() => {
    const [code, reason] = scope.ending === "closed" ? CLOSED : TIMEOUT;
    for (const started of running) started.abort(code, reason);
  });
  startLanes(call, batch, { destinationOf, bytesOf: bodyBytes });
  return await call.done;
}

const TIMEOUT = ["TIMEOUT", "no answer before the publish deadline"] as const;
const CLOSED = ["CLOSED", "the http broker was closed before the answer"] as const;
