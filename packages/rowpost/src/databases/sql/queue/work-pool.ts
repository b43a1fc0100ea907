/**
 * Sessions that a queue's consumers share for reads and settles. A statement takes a free one or
 * opens another. A slow one no longer counts toward the bound, so it delays no other.
 */
import type { Session } from "../../database.ts";
import type { SessionSlots } from "../session-slots.ts";

export interface WorkPool {
  run<T>(work: (session: Session) => Promise<T>): Promise<T>;
}

/** Most at once, without slow ones. */
const MOST = 8;
/** A statement slower than this is blocked by a lock, a disk or a frozen server. */
const LONG_MS = 250;

export function createWorkPool(slots: Pick<SessionSlots, "retry">): WorkPool {
  /** Takes the lowest number first, so that unused ones are closed. */
  const idle: number[] = [];
  /** Start time of each running session. */
  const running = new Map<number, number>();
  const waiting: (() => void)[] = [];
  let made = 0;
  let timer: NodeJS.Timeout | undefined;

  function ages(): number[] {
    const nowMs = performance.now();
    return [...running.values()].map((sinceMs) => nowMs - sinceMs).filter((ageMs) => ageMs < LONG_MS);
  }

  function begin(): void {
    clearTimeout(timer);
    while (waiting.length > 0 && ages().length < MOST) waiting.shift()?.();
    if (waiting.length > 0) timer = setTimeout(begin, LONG_MS - Math.max(...ages()));
  }

  function giveBack(number: number): void {
    running.delete(number);
    idle.push(number);
    if (waiting.length > 0) begin();
  }

  function take(): number {
    idle.sort((left, right) => right - left);
    if (idle.length === 0) made += 1;
    const number = idle.pop() ?? made;
    running.set(number, performance.now());
    return number;
  }

  return {
    async run(work) {
      const number =
        running.size < MOST
          ? take()
          : await new Promise<number>((resolve) => {
              waiting.push(() => resolve(take()));
              begin();
            });
      try {
        return await slots.retry(`work ${number}`, work);
      } finally {
        giveBack(number);
      }
    },
  };
}
