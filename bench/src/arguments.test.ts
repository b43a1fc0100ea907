import { expect, test } from "vitest";
import { parseBenchArguments, UsageError } from "./arguments.ts";

test("a quick run is small and runs once, unless told otherwise", () => {
  const words = ["outbox-drain", "--database", "sqlite:", "--quick"];
  expect(parseBenchArguments(words)).toMatchObject({ messages: 5000, runs: 1 });
  expect(parseBenchArguments([...words, "--messages", "10", "--runs", "2"])).toMatchObject({ messages: 10, runs: 2 });
  expect(parseBenchArguments(words.slice(0, 3))).toMatchObject({ messages: undefined, runs: 3, json: false });
});

test.each([
  [[], /name a scenario/],
  [["outbox-drain"], /--database URL is missing/],
  [["outbox-drain", "outbox-enqueue", "--database", "sqlite:"], /one scenario at a time/],
  [["outbox-drain", "--database", "sqlite:", "--messages", "many"], /--messages is "many"/],
  [["outbox-drain", "--speed"], /--speed/],
  [["report"], /name the files/],
])("wrong words are told in one line: %j", (words: string[], message: RegExp) => {
  expect(() => parseBenchArguments(words)).toThrow(UsageError);
  expect(() => parseBenchArguments(words)).toThrow(message);
});
