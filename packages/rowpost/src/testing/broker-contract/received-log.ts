import type { ArrivedMessage, BrokerHarness, ConsumeRequest } from "./harness.ts";

/** Arrivals by topic: the part of a harness that is the same for every broker. */
export interface ReceivedLog {
  /**
   * Called by the harness's consumer for each message in order of arrival, including duplicates.
   */
  add(topic: string, message: ArrivedMessage): void;
  /** {@link BrokerHarness.consume}. */
  readonly consume: BrokerHarness["consume"];
}

/** Creates a log. */
export function createReceivedLog(): ReceivedLog {
  const received: { readonly topic: string; readonly message: ArrivedMessage }[] = [];
  const waiters = new Set<() => void>();

  function select({ topic, keyPrefix }: ConsumeRequest): ArrivedMessage[] {
    return received
      .filter((entry) => entry.topic === topic && keyOf(entry.message).startsWith(keyPrefix))
      .map(({ message }) => message);
  }

  function isComplete(request: ConsumeRequest): boolean {
    return new Set(select(request).map(keyOf)).size >= request.count;
  }

  return {
    add(topic, message) {
      received.push({ topic, message });
      for (const wake of waiters) wake();
    },
    async consume(request) {
      if (!isComplete(request)) await untilComplete(request);
      return select(request);
    },
  };

  function untilComplete(request: ConsumeRequest): Promise<void> {
    return new Promise((resolve) => {
      function end(): void {
        clearTimeout(timer);
        waiters.delete(wake);
        resolve();
      }
      function wake(): void {
        if (isComplete(request)) end();
      }
      const timer = setTimeout(end, request.withinMs);
      waiters.add(wake);
    });
  }
}

function keyOf({ headers }: ArrivedMessage): string {
  return headers["rowpost-key"] ?? "";
}
