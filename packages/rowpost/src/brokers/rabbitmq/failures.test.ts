import { expect, test } from "vitest";
import { isAboutExchange, isAboutRoutingKey, refusedRoutingKey, saidBy } from "./failures.ts";

/** As amqplib 2.3.1 reports errors of RabbitMQ 3.10. */
function refusal(words: string) {
  return saidBy(new Error(`Channel closed by server: 403 (ACCESS-REFUSED) with message "ACCESS_REFUSED - ${words}"`));
}

const topic = (key: string): string =>
  `access to topic '${key}' in exchange 'shop' in vhost '/' refused for user 'relay'`;

test("a refused routing key is told from a refused exchange", () => {
  expect(isAboutRoutingKey(refusal(topic("secret.b")))).toBe(true);
  expect(isAboutExchange(refusal(topic("secret.b")))).toBe(false);
  const exchange = refusal("access to exchange 'shop' in vhost '/' refused for user 'relay'");
  expect(isAboutRoutingKey(exchange)).toBe(false);
  expect(isAboutExchange(exchange)).toBe(true);
});

test.each([
  ["one of many", topic("secret.b"), ["public.a", "secret.b", "secret.b", "secret"], "secret.b"],
  ["one with quotes", topic("it's 'b'"), ["it's", "it's 'b'"], "it's 'b'"],
  ["none of ours", topic("secret.b"), ["public.a"], undefined],
  ["cut at 255 bytes", `access to topic '${"k".repeat(200)}...`, ["public.a", `${"k".repeat(220)}`], "k".repeat(220)],
  [
    "cut, and two that begin like that",
    `access to topic '${"k".repeat(200)}...`,
    ["k".repeat(220), "k".repeat(230)],
    undefined,
  ],
])("which one: %s", (_what, words, keys, expected) => {
  expect(refusedRoutingKey(refusal(words), keys)).toBe(expected);
});
