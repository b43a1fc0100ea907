/** How often the event loop goes round while this works: timers, and so heartbeats, run then. */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let next = setImmediate(function turn() {
    turns += 1;
    next = setImmediate(turn);
  });
  try {
    await work();
  } finally {
    clearImmediate(next);
  }
  return turns;
}
