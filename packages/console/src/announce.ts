/** Announcements to screen readers, all from one place. */
import { signal } from "@preact/signals";

export const announcement = signal("");
/** Result of the user's action, also shown for a while. */
export const notice = signal("");

let timer: ReturnType<typeof setTimeout> | undefined;

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

/** Announces background changes to screen readers only, no faster than they can speak. */
export function tellQuietly(text: string): void {
  if (performance.now() - toldAt < QUIET_MS) return;
  toldAt = performance.now();
  announcement.value = text;
}
