import { describe, expect, test } from "vitest";
import { type SqsOptions, settingsFrom, sqsOptionsFromUrl } from "./options.ts";

describe("options of a URL", () => {
  test("name a region, or an endpoint where there is a dot or a port", () => {
    expect(sqsOptionsFromUrl("sqs://eu-central-1?account=123&inFlight=4&timeoutMs=900&maxMessageBytes=2048")).toEqual({
      region: "eu-central-1",
      account: "123",
      maxInFlight: 4,
      timeoutMs: 900,
      maxMessageBytes: 2048,
    });
    expect(sqsOptionsFromUrl("sqs://127.0.0.1:9324?region=x")).toEqual({
      endpoint: "http://127.0.0.1:9324",
      region: "x",
    });
    expect(sqsOptionsFromUrl("sqs://sqs.local?scheme=https")).toEqual({ endpoint: "https://sqs.local" });
  });

  test("put prefix and suffix around the topic", () => {
    expect(sqsOptionsFromUrl("sqs://eu-central-1?prefix=shop-&suffix=.fifo").queue?.("orders")).toBe(
      "shop-orders.fifo",
    );
  });

  test.each([
    ["sqs://AKIA:secret@eu-central-1", /no access key in it/],
    ["sqs://", /expected sqs/],
    ["sqs://eu-central-1?regoin=x", /unknown setting "regoin"/],
  ])("%s is refused, and no secret is repeated", (url, words) => {
    expect(() => sqsOptionsFromUrl(url)).toThrow(words);
    expect(() => sqsOptionsFromUrl(url)).not.toThrow(/secret/);
  });
});

test.each<[SqsOptions, RegExp]>([
  [{ client: { send: () => undefined }, region: "x" }, /region cannot be given with a client/],
  [{ client: {} }, /no SQSClient/],
  [{ endpoint: "127.0.0.1:9324" }, /endpoint is no URL/],
  [{ maxMessageBytes: 2_000_000 }, /maxMessageBytes/],
])("%j is refused", (options, words) => {
  expect(() => settingsFrom(options)).toThrow(words);
});
