import { Writable } from "node:stream";
import type { StdoutLine } from "../../src/brokers/stdout.ts";
import { stdout } from "../../src/brokers/stdout.ts";
import type { BrokerHarness } from "../../src/testing/index.ts";
import { createReceivedLog } from "../../src/testing/index.ts";
import { bindBrokerContract } from "./bind.ts";

bindBrokerContract("stdout", (): BrokerHarness => {
  const log = createReceivedLog();
  return {
    name: "stdout",
    createBroker: () => stdout({ stream: lineReader((line) => log.add(line.topic, received(line))) }),
    features: { ordering: "key", delay: false, reportsUnknownTopic: false, maxBodyBytes: undefined },
    topics: { main: "orders", other: "billing", ordered: "orders" },
    consume: log.consume,
  };
});

/** A stream that is read like a pipe: chunks are cut anywhere, lines are put together again. */
function lineReader(onLine: (line: StdoutLine) => void): Writable {
  let rest = Buffer.alloc(0);
  return new Writable({
    highWaterMark: 1_024,
    write(chunk: Buffer, _encoding, callback) {
      rest = Buffer.concat([rest, chunk]);
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
        onLine(JSON.parse(rest.subarray(0, end).toString()) as StdoutLine);
        rest = rest.subarray(end + 1);
      }
      setImmediate(callback);
    },
  });
}

function received({ body, bodyEncoding, headers, contentType }: StdoutLine) {
  const lowerCase = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return {
    body: Buffer.from(body, bodyEncoding ?? "utf8"),
    headers: Object.fromEntries(lowerCase),
    contentType,
    receivedAtMs: Date.now(),
  };
}
