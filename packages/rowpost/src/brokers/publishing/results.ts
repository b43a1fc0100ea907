/** Results of a call by index, and the effect of a failure on later messages. */
import type { OutgoingMessage, PublishFailed, PublishNotStarted, PublishResult } from "../broker.ts";
import { failed } from "./failures.ts";

export const ABORTED: PublishNotStarted = { status: "notStarted", reason: "the publish was aborted before its turn" };
const BEHIND: PublishNotStarted = {
  status: "notStarted",
  reason: "an earlier message of its ordering key failed",
};

export interface Placed {
  readonly index: number;
  readonly orderingKey: string | undefined;
}

export interface Results {
  readonly open: number;
  sent(index: number, messageId: string): void;
  /**
   * Sets the result and its effect on others: the destination or the connection is away from now
   * on.
   */
  fail(placed: Placed, destination: string, failure: PublishFailed | PublishNotStarted): void;
  /** Blocks later messages of its key, although its own result comes later. */
  block(placed: Placed): void;
  readonly isBehind: (placed: Placed) => boolean;
  behind(placed: Placed): void;
  goOffline(failure: PublishFailed): void;
  /** Why nothing more can be sent to this destination in this call. */
  awayFor(destination: string): PublishFailed | undefined;
  /** Marks everything without a result as not started, except these, which are in flight. */
  abort(underWay: ReadonlySet<number>): void;
  all(): PublishResult[];
}

export function createResults(count: number): Results {
  const results = new Array<PublishResult | undefined>(count);
  const failedKeys = new Map<string, number>();
  const away = new Map<string, PublishFailed>();
  let offline: PublishFailed | undefined;
  let open = count;

  function write(index: number, result: PublishResult): void {
    if (results[index] !== undefined) return;
    results[index] = result;
    open -= 1;
  }

  const isBehind = ({ index, orderingKey }: Placed): boolean =>
    orderingKey !== undefined && failedKeys.size > 0 && index > (failedKeys.get(orderingKey) ?? index);

  function block({ index, orderingKey }: Placed): void {
    if (orderingKey !== undefined) failedKeys.set(orderingKey, Math.min(index, failedKeys.get(orderingKey) ?? index));
  }

  return {
    get open() {
      return open;
    },
    sent: (index, messageId) => write(index, { status: "sent", messageId }),
    fail(placed, destination, failure) {
      if (failure.status === "notStarted") {
        block(placed);
        write(placed.index, failure);
        return;
      }
      if (failure.scope === "connection") offline ??= failure;
      if (failure.scope === "destination") away.set(destination, failure);
      if (failure.scope !== "unknown" && isBehind(placed)) {
        write(placed.index, BEHIND);
        return;
      }
      block(placed);
      write(placed.index, plain(failure));
    },
    block,
    isBehind,
    behind: ({ index }) => write(index, BEHIND),
    goOffline(failure) {
      offline ??= failure;
    },
    awayFor: (destination) => offline ?? (away.size === 0 ? undefined : away.get(destination)),
    abort(underWay) {
      for (let index = 0; index < count; index += 1) if (!underWay.has(index)) write(index, ABORTED);
    },
    all: () => (open === 0 ? (results as PublishResult[]) : Array.from(results, (result) => result ?? ABORTED)),
  };
}

function plain({ scope, code, reason, ...rule }: PublishFailed): PublishFailed {
  return failed(scope, code, reason, rule);
}

export function failBatch(
  batch: readonly OutgoingMessage[],
  failure: PublishFailed | ((message: OutgoingMessage) => PublishFailed),
): PublishResult[] {
  const results = createResults(batch.length);
  for (const [index, message] of batch.entries()) {
    const { orderingKey, topic } = message;
    results.fail({ index, orderingKey }, topic, typeof failure === "function" ? failure(message) : failure);
  }
  return results.all();
}
