/** The one place from which a screen reader is told what changed. */
import { signal } from "@preact/signals";

export const announcement = signal("");
/** What a person did is shown for a while, too. */
export const notice = signal("");

let timer: ReturnType<typeof setTimeout> | undefined;

/** Says what has been done. */
export function announce(text: string): void {
  announcement.value = text;
  notice.value = text;
  clearTimeout(timer);
  timer = setTimeout(() => {
    notice.value = "";
  }, 6_000);
}

const QUIET_MS = 10_000;
let toldAt = -QUIET_MS;

/** Says what came by itself, to screen readers only, and not more often than they can say it. */
export function tellQuietly(text: string): void {
  if (performance.now() - toldAt < QUIET_MS) return;
  toldAt = performance.now();
  announcement.value = text;
}
