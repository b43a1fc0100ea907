import { expect, test } from "vitest";
import { checkVariants, parseBenchArguments, UsageError } from "./arguments.ts";

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

test("a variant that the scenario does not have is a wrong word, and the line names those that it has", () => {
  const check = (variants: readonly string[], known: readonly string[]) => () =>
    checkVariants({ scenario: "outbox-drain", variants }, known);
  expect(check([], ["on", "off"])).not.toThrow();
  expect(check(["off"], ["on", "off"])).not.toThrow();
  expect(check(["off", "of"], ["on", "off"])).toThrow(new UsageError("outbox-drain has no variant of; it has on, off"));
  expect(check(["on"], [])).toThrow(new UsageError("outbox-drain has no variant on; it has none"));
});
