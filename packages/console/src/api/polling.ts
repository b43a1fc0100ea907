/**
 * Polls the data of a page while it is visible, not paused and the user is logged in; slower while
 * the server does not answer. The last data stays, with its age.
 */
import { computed, effect, signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiProblem } from "./client.ts";
import { isLoggedIn, sessionEnded } from "./session.ts";

/** Stops polling. */
export const paused = signal(false);

const isVisible = signal(document.visibilityState === "visible");
document.addEventListener("visibilitychange", () => {
  isVisible.value = document.visibilityState === "visible";
});

const isWatched = computed(() => isVisible.value && isLoggedIn.value);
const isActive = computed(() => isWatched.value && !paused.value);

export const freshness = signal<{ readonly asOf: number | undefined; readonly problem: ApiProblem | undefined }>({
  asOf: undefined,
  problem: undefined,
});

/** Now, updated once a second while the page is visible. */
export const now = signal(Date.now());
setInterval(() => {
  if (isVisible.value) now.value = Date.now();
}, 1_000);

const SLOWEST_MS = 60_000;

/** The last answer, its time, and errors since. */
export interface Polled<Answer> {
  readonly answer: Answer | undefined;
  readonly at: number | undefined;
  readonly problem: ApiProblem | undefined;
  readonly again: () => void;
}

/** Loads the data of `key`, again every `everyMs` (0: only once). Another key drops the answer. */
export function usePolled<Answer>(
  key: string,
  load: (signal: AbortSignal) => Promise<Answer>,
  { everyMs, isPage = false }: { readonly everyMs: number; readonly isPage?: boolean },
): Polled<Answer> {
  type Held = Omit<Polled<Answer>, "again"> & { readonly key: string };
  const [held, setHeld] = useState<Held>();
  const loadNow = useRef(load);
  loadNow.current = load;
  const again = useRef<() => void>(() => undefined);
  useEffect(() => {
    const poll = createPoll({
      load: (signal) => loadNow.current(signal),
      everyMs,
      onAnswer(answer) {
        setHeld({ key, answer, at: Date.now(), problem: undefined });
        if (isPage) freshness.value = { asOf: Date.now(), problem: undefined };
      },
      onProblem(problem) {
        setHeld((before) => ({
          key,
          problem,
          answer: before?.key === key ? before.answer : undefined,
          at: before?.key === key ? before.at : undefined,
        }));
        if (isPage) freshness.value = { asOf: freshness.value.asOf, problem };
      },
    });
    again.current = poll.again;
    return poll.end;
  }, [key, everyMs, isPage]);
  const mine = held?.key === key ? held : { answer: undefined, at: undefined, problem: undefined };
  return { ...mine, again: () => again.current() };
}

interface PollOptions<Answer> {
  readonly load: (signal: AbortSignal) => Promise<Answer>;
  readonly everyMs: number;
  readonly onAnswer: (answer: Answer) => void;
  readonly onProblem: (problem: ApiProblem) => void;
}

function createPoll<Answer>({ everyMs, load, onAnswer, onProblem }: PollOptions<Answer>) {
  const ended = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let isAsking = false;
  let isKnown = false;

  async function ask(): Promise<void> {
    clearTimeout(timer);
    if (isAsking || ended.signal.aborted) return;
    isAsking = true;
    try {
      const answer = await load(ended.signal);
      if (ended.signal.aborted) return;
      failures = 0;
      isKnown = true;
      onAnswer(answer);
    } catch (error) {
      if (ended.signal.aborted) return;
      const problem = problemOf(error);
      failures = problem.isAway || problem.code === "rate-limited" ? failures + 1 : 0;
      if (problem.code === "unauthenticated") sessionEnded();
      onProblem(problem);
    } finally {
      isAsking = false;
    }
    plan();
  }

  function plan(): void {
    clearTimeout(timer);
    if (!isActive.peek() || ended.signal.aborted) return;
    const isOnce = everyMs === 0;
    if (isOnce && failures === 0) return;
    const waitMs = failures === 0 ? everyMs : Math.min(SLOWEST_MS, 2_000 * 2 ** (failures - 1));
    timer = setTimeout(() => void ask(), waitMs);
  }

  // Updates a page that becomes visible again.
  const unwatch = effect(() => {
    if (!isActive.value) clearTimeout(timer);
    // Data never shown is loaded once, even when paused.
    if (isActive.value ? !isKnown || everyMs > 0 : isWatched.value && !isKnown) void ask();
  });
  return {
    again: () => void ask(),
    end: () => {
      clearTimeout(timer);
      unwatch();
      ended.abort();
    },
  };
}

/** Other errors are bugs of the app and must be visible. */
export function problemOf(error: unknown): ApiProblem {
  if (error instanceof ApiProblem) return error;
  throw error;
}
