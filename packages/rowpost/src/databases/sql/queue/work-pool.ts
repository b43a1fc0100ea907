/**
 * The sessions that the consumers of a queue share for their reads and settles. A statement takes
 * one that is free, or opens another one. What takes long holds up nobody else: it counts to the
 * bound no more.
 */
import type { Session } from "../../database.ts";
import type { SessionSlots } from "../session-slots.ts";

export interface WorkPool {
  run<T>(work: (session: Session) => Promise<T>): Promise<T>;
}

/** At once, without those that take long. */
const MOST = 8;
/** A statement that takes longer waits for somebody: a lock, a disk, a server that is frozen. */
const LONG_MS = 250;

export function createWorkPool(slots: Pick<SessionSlots, "retry">): WorkPool {
  /** The lowest number is taken first, so that the others are closed when nothing uses them. */
  const idle: number[] = [];
  /** Since when each session works. */
  const running = new Map<number, number>();
  const waiting: (() => void)[] = [];
  let made = 0;
  let timer: NodeJS.Timeout | undefined;

  /** How long those run that count to the bound. */
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
