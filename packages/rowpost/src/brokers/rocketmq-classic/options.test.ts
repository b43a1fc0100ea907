import { describe, expect, test } from "vitest";
import { rocketmqClassic } from "./index.ts";
import { rocketmqClassicOptionsFromUrl as fromUrl } from "./url.ts";

const nameServers = "127.0.0.1:9876";

test.each([
  [{ nameServers: "" }, /nameServers is empty/],
  [{ nameServers: "a:1;b:70000" }, /"b:70000" is not host:port/],
  [{ nameServers: "key:hunter2@a:1" }, /^(?!.*hunter2).*no keys in nameServers/],
  [{ nameServers, accessKey: "k" }, /accessKey and secretKey belong together/],
  [{ nameServers, namespace: "a b" }, /namespace may have letters/],
  [{ nameServers, weakReceipts: "maybe" as "fail" }, /weakReceipts/],
  [{ nameServers, batchSize: 0 }, /batchSize/],
])("wrong options %j are refused", (options, words) => {
  expect(() => rocketmqClassic(options)).toThrow(words);
});

describe("a URL", () => {
  test("names servers, namespace and settings; keys come from the environment", () => {
    const url = "rocketmq-classic://ns1;ns2:9877/shop?batch=8&tls=true&group=orders&weakReceipts=accept";
    expect(fromUrl(url, { ROWPOST_ROCKETMQ_ACCESS_KEY: "k", ROWPOST_ROCKETMQ_SECRET_KEY: "s" })).toEqual({
      nameServers: "ns1;ns2:9877",
      namespace: "shop",
      batchSize: 8,
      tls: true,
      producerGroup: "orders",
      weakReceipts: "accept",
      accessKey: "k",
      secretKey: "s",
    });
  });

  test.each([
    ["rocketmq-classic://k:hunter2@a", /^(?!.*hunter2).*set ROWPOST_ROCKETMQ_ACCESS_KEY/],
    ["rocketmq-classic://a/b/c", /more than a namespace/],
    ["rocketmq-classic://a?bath=1", /unknown setting "bath"/],
  ])("%s is refused", (url, words) => {
    expect(() => fromUrl(url, {})).toThrow(words);
  });
});
