/** Members that a test starts, and how it waits for what they do. */
import type { Consumer, Queue, QueueConsumeOptions, QueueMessage, QueueMessageAttempt } from "../../src/queue/index.ts";

type Given = Partial<QueueConsumeOptions> & Pick<QueueConsumeOptions, "handler">;

/** The members of one test. */
export interface Members {
  start(options: Given): Promise<Consumer>;
  /** What each said, in the order in which they were started. */
  stopAll(): Promise<Awaited<ReturnType<Consumer["stop"]>>[]>;
}

/** Of topic `orders` and group `billing`, unless the options say otherwise. */
export function createMembers(queue: Queue, usual: Partial<QueueConsumeOptions> = {}): Members {
  const running: Consumer[] = [];
  return {
    async start(options) {
      const names = { topic: "orders", group: "billing", logger: "silent" } as const;
      const member = await queue.consume({ ...names, ...usual, ...options });
      running.push(member);
      return member;
    },
    async stopAll() {
      const stopped = [];
      for (const member of running.splice(0)) stopped.push(await member.stop());
      return stopped;
    },
  };
}

/** Messages of the topic `orders` with the keys and bodies 0, 1, 2 and so on. */
export function numbers(count: number, more: object = {}): QueueMessage[] {
  return Array.from({ length: count }, (_, index) => ({ topic: "orders", key: String(index), body: index, ...more }));
}

/** The first group of the topic `orders` has nothing left to do. */
export async function isDone(queue: Queue): Promise<boolean> {
  const [group] = await queue.groups({ topic: "orders" });
  return group?.lag.count === 0 && group.waiting.count === 0;
}

/** The number of the message in the list and a text, of each record in order of the attempts. */
export async function recordsOf(
  queue: Queue,
  ids: readonly string[],
  text: (record: QueueMessageAttempt) => string,
): Promise<string[]> {
  const all: string[] = [];
  for (const [number, id] of ids.entries()) {
    const { attempts = [] } = (await queue.message("orders", id)) ?? {};
    all.push(...attempts.map((attempt) => `${number} ${text(attempt)}`));
  }
  return all;
}

/** What a test waits for, or lets others wait for. */
export function gate(): { readonly open: () => void; readonly opened: Promise<void> } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}
