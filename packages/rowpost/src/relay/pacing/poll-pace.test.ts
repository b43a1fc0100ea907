import { expect, it } from "vitest";
import { createManualClock } from "../../testing/manual-clock.ts";
import { createPollPace } from "./poll-pace.ts";

it("stays fast for a second after a message, then doubles up to the maximum", async () => {
  const clock = createManualClock();
  const pace = createPollPace({ minMs: 10, maxMs: 250 }, clock);
  pace.found();
  expect(pace.nextWaitMs()).toBe(10);
  await clock.advance(1_000);
  expect([1, 2, 3, 4, 5, 6].map(() => pace.nextWaitMs())).toEqual([20, 40, 80, 160, 250, 250]);
  pace.found();
  expect(pace.nextWaitMs()).toBe(10);
});
