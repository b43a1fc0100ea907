import { expect, test } from "vitest";
import type { Outcome } from "../store.ts";
import { inPlainerWords } from "./plainer-words.ts";

const failed: Outcome = {
  id: "1",
  shard: 0,
  deliveryCount: 1,
  lockVersion: "1",
  identityHash: "0",
  toState: "failed",
  messageId: null,
  retryDelta: 1,
  deliveryDelta: 0,
  nextRetryInMs: null,
  failReason: "E: größe 😀",
};

test("ASCII, then shorter each time, then without the text, then nothing", () => {
  const reasons: (string | null)[] = [];
  for (let next = inPlainerWords(failed); next !== undefined; next = inPlainerWords(next)) {
    reasons.push(next.failReason);
  }
  expect(reasons).toEqual(["E: gr\\u00F6\\u00DFe \\uD83D\\uDE00", "E: gr\\u00F6\\u00", "E: gr\\u", null]);
});
