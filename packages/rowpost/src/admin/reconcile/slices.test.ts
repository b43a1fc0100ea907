import { describe, expect, it } from "vitest";
import { inSlices, TooMuchError } from "./slices.ts";
import type { Window } from "./store.ts";

/** Successful slices when at most `fits` milliseconds fit. */
async function slices(window: Window, fits: number): Promise<Window[]> {
  const done: Window[] = [];
  await inSlices(window, (slice, mayFail) => {
    if (slice.toMs - slice.fromMs > fits && mayFail) return Promise.reject(new TooMuchError());
    done.push(slice);
    return Promise.resolve();
  });
  return done;
}

describe("slices", () => {
  it("are the whole window where it fits, and none of an empty one", async () => {
    expect(await slices({ fromMs: 5, toMs: 86_400_005 }, 86_400_000)).toEqual([{ fromMs: 5, toMs: 86_400_005 }]);
    expect(await slices({ fromMs: 5, toMs: 5 }, 1)).toEqual([]);
  });

  it("are halved until they fit, and leave nothing out", async () => {
    const done = await slices({ fromMs: 500, toMs: 100_700 }, 15_000);
    expect(done[0]?.fromMs).toBe(500);
    expect(done.at(-1)?.toMs).toBe(100_700);
    expect(done.slice(1).map(({ fromMs }) => fromMs)).toEqual(done.slice(0, -1).map(({ toMs }) => toMs));
    expect(Math.max(...done.map(({ fromMs, toMs }) => toMs - fromMs))).toBe(13_000);
  });

  it("are not halved for ever", async () => {
    expect(await slices({ fromMs: 0, toMs: 5_000 }, 1)).toEqual([
      { fromMs: 0, toMs: 2_000 },
      { fromMs: 2_000, toMs: 4_000 },
      { fromMs: 4_000, toMs: 5_000 },
    ]);
  });
});
