/** How much a broker adapter has handed over that is not acknowledged, over all publish calls: a number of messages, and their bytes. */

export interface MessageWindow {
  /** Takes room for a message of this size; false when there is none. A message larger than all of it goes when nothing else is under way. */
  take(bytes: number): boolean;
  /** Gives the room back, and calls those that wait for it. */
  release(bytes: number): void;
  /** Calls back once when there is room again; those that came first are called first. */
  onRoom(callback: () => void): void;
  /** Takes the callback back. */
  stopWaiting(callback: () => void): void;
}

/** Makes one. The bytes bound memory when bodies are large. */
export function createMessageWindow(limits: { readonly messages: number; readonly bytes: number }): MessageWindow {
  const waiting = new Set<() => void>();
  let messages = 0;
  let bytesTaken = 0;

  const hasRoom = (bytes: number): boolean =>
    messages === 0 || (messages < limits.messages && bytesTaken + bytes <= limits.bytes);

  return {
    take(bytes) {
      if (!hasRoom(bytes)) return false;
      messages += 1;
      bytesTaken += bytes;
      return true;
    },
    release(bytes) {
      messages -= 1;
      bytesTaken -= bytes;
      if (waiting.size === 0) return;
      // Each takes what it can, and comes back when that was not all. The ones that come back wait for the next release.
      for (const callback of [...waiting]) {
        if (!hasRoom(1)) return;
        if (waiting.delete(callback)) callback();
      }
    },
    onRoom(callback) {
      waiting.add(callback);
    },
    stopWaiting(callback) {
      waiting.delete(callback);
    },
  };
}
