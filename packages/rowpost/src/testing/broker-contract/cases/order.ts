/** Messages with equal ordering keys arrive in the order of publishing. */
import assert from "node:assert/strict";
import type { OutgoingMessage } from "../../../brokers/broker.ts";
import type { BrokerContractCase } from "../case.ts";
import { assertMessageFailure, assertSent, given, unsendable } from "../context.ts";

const KEYS = 20;
const MESSAGES_PER_KEY = 50;
const ROUNDS = 5;

export const orderCases: readonly BrokerContractCase[] = [
  {
    name: `${KEYS} ordering keys with ${MESSAGES_PER_KEY} messages each keep their order over interleaved calls`,
    needs: ["orderedTopic"],
    timeoutMs: 60_000,
    async run(context) {
      const topic = given(context.harness.topics.ordered, "topics.ordered");
      const all: OutgoingMessage[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        // Two concurrent calls with different ordering keys, as a relay makes them; in each call
        // the keys alternate.
        const calls: [OutgoingMessage[], OutgoingMessage[]] = [[], []];
        for (let turn = 0; turn < MESSAGES_PER_KEY / ROUNDS; turn += 1) {
          for (let key = 0; key < KEYS; key += 1) {
            const body = JSON.stringify({ key, number: round * (MESSAGES_PER_KEY / ROUNDS) + turn });
            (key < KEYS / 2 ? calls[0] : calls[1]).push(
              context.message({ topic, orderingKey: `${context.keyPrefix}-${key}`, body }),
            );
          }
        }
        await Promise.all(calls.map((batch) => context.publishAll(batch, { deadlineMs: 30_000 })));
        all.push(...calls.flat());
      }
      const received = await context.arrivals(topic, all);
      const numbersByKey = new Map<number, number[]>();
      for (const { body } of received) {
        const { key, number } = JSON.parse(Buffer.from(body).toString()) as { key: number; number: number };
        numbersByKey.set(key, [...(numbersByKey.get(key) ?? []), number]);
      }
      const inOrder = Array.from({ length: MESSAGES_PER_KEY }, (_, number) => number);
      assert.equal(numbersByKey.size, KEYS);
      for (const [key, numbers] of numbersByKey) assert.deepEqual(numbers, inOrder, `order of key ${key}`);
    },
  },
  {
    name: "a failing message stops the later ones of its ordering key, and no others",
    needs: ["orderedTopic", "unsendable"],
    async run(context) {
      const topic = given(context.harness.topics.ordered, "topics.ordered");
      const [a, b] = [`${context.keyPrefix}-a`, `${context.keyPrefix}-b`];
      const batch = [
        context.message({ topic, orderingKey: a }),
        context.message({ topic, orderingKey: b }),
        unsendable(context, context.message({ topic, orderingKey: a })),
        context.message({ topic, orderingKey: b }),
        context.message({ topic, orderingKey: a }),
        context.message({ topic, orderingKey: a }),
        context.message({ topic, orderingKey: b }),
      ];
      const results = await context.publish(batch);
      for (const index of [0, 1, 3, 6]) assertSent(results[index]);
      assertMessageFailure(results[2], false);
      for (const index of [4, 5]) assert.equal(results[index]?.status, "notStarted");
      const sent = batch.filter((_message, index) => results[index]?.status === "sent");
      const marker = context.message({ topic, orderingKey: a });
      await context.publishAll([marker]);
      const received = await context.arrivals(topic, [...sent, marker]);
      assert.equal(received.length, sent.length + 1, "nothing of the others arrived");
    },
  },
];
