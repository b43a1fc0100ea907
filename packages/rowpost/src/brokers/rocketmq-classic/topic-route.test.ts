import { describe, expect, test } from "vitest";
import { primariesFrom, queueOf, topicRouteFrom } from "./topic-route.ts";

const route = (more = ""): Buffer =>
  Buffer.from(`{${more}"brokerDatas":[{"brokerAddrs":{0:"10.0.0.2:10911",1:"10.0.0.9:10911"},"brokerName":"b,{1:"},
    {"brokerAddrs":{0:"10.0.0.1:10911"},"brokerName":"a"},{"brokerAddrs":{1:"10.0.0.3:10911"},"brokerName":"replica"}],
    "filterServerTable":{},"queueDatas":[{"brokerName":"b,{1:","perm":6,"readQueueNums":4,"writeQueueNums":2},
    {"brokerName":"a","perm":7,"readQueueNums":4,"writeQueueNums":1},
    {"brokerName":"replica","perm":6,"readQueueNums":4,"writeQueueNums":4}]}`);

describe("topicRouteFrom", () => {
  test("reads numbers as names, as servers before 4.9.4 write them; primaries only, by broker", () => {
    expect(topicRouteFrom(route()).queues).toEqual([
      { broker: "a", address: "10.0.0.1:10911", id: 0 },
      { broker: "b,{1:", address: "10.0.0.2:10911", id: 0 },
      { broker: "b,{1:", address: "10.0.0.2:10911", id: 1 },
    ]);
  });

  test("leaves out what takes no writes", () => {
    const readOnly = Buffer.from(route().toString().replace('"perm":7', '"perm":4'));
    expect(topicRouteFrom(readOnly).queues.map(({ broker }) => broker)).toEqual(["b,{1:", "b,{1:"]);
  });

  test("follows an administrator's order of brokers and queues", () => {
    const queues = topicRouteFrom(route('"orderTopicConf":"b,{1::1;a:2",')).queues;
    expect(queues.map(({ broker, id }) => `${broker}${id}`)).toEqual(["a0", "a1"]);
  });
});

test("primariesFrom finds each primary of a cluster", () => {
  const cluster = '{"brokerAddrTable":{"a":{"brokerAddrs":{0:"h:1",1:"h:2"},"brokerName":"a"}},"clusterAddrTable":{}}';
  expect(primariesFrom(Buffer.from(cluster))).toEqual(["h:1"]);
});

test.each([
  // Values of Java's String.hashCode(), and the remainder by 5.
  ["a", 97],
  ["order-1", -1_207_111_310],
  ["订单", 1_129_459],
  ["polygenelubricants", -2_147_483_648],
])("queueOf takes the queue of Java's hash of %s", (key, hash) => {
  const queues = Array.from({ length: 5 }, (_, id) => ({ broker: "a", address: "", id }));
  expect(queueOf(key, queues)?.id).toBe(Math.abs(hash % 5));
});
