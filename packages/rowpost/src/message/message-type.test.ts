import * as valibot from "valibot";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { ConfigurationError, InvalidMessageError } from "../runtime/errors.ts";
import type { NewMessage } from "./message.ts";
import { DECLARED_TYPE, DEFAULT_RETRY_POLICY, type MessageType, messageType } from "./message-type.ts";
import { type StandardSchema, validateWith } from "./standard-schema.ts";

interface Order {
  readonly id: string;
  readonly customer: string;
}
const order: Order = { id: "o-1", customer: "c-1" };

describe("messageType", () => {
  test("makes messages with type, topic and what the message says", () => {
    const created = messageType<Order>("order.created", { topic: "orders", contentType: "application/vnd.order+json" });
    const made = created.message({ key: "o-1", body: order, headers: { a: "b" }, delayMs: 5 });
    expect(made).toMatchObject({
      type: "order.created",
      topic: "orders",
      key: "o-1",
      body: order,
      headers: { a: "b" },
      delayMs: 5,
      contentType: "application/vnd.order+json",
    });
    expect(created.message({ key: "o-1", topic: "other", contentType: "application/json", body: order })).toMatchObject(
      {
        topic: "other",
        contentType: "application/json",
      },
    );
  });

  test("derives keys from the body, and a message's own win", () => {
    const created = messageType<Order>("order.created", {
      topic: "orders",
      key: ({ id }) => id,
      orderingKey: ({ customer }) => customer,
    });
    expect(created.message({ body: order })).toMatchObject({ key: "o-1", orderingKey: "c-1" });
    expect(created.message({ body: order, key: "k", orderingKey: "o" })).toMatchObject({ key: "k", orderingKey: "o" });
  });

  test("a key function that throws is told as what it is", () => {
    const created = messageType<Order>("order.created", { topic: "orders", key: (body) => body.id.toUpperCase() });
    expect(() => created.message({ body: {} as Order })).toThrow(InvalidMessageError);
    expect(() => created.message({ body: {} as Order })).toThrow(
      "the key function of message type order.created threw",
    );
  });

  test("its declaration survives a copy and stays out of JSON", () => {
    const made = messageType<Order>("order.created", { topic: "orders" }).message({ key: "k", body: order });
    expect({ ...made }[DECLARED_TYPE]).toBe(made[DECLARED_TYPE]);
    expect(Object.keys(JSON.parse(JSON.stringify(made)) as object).sort()).toEqual(["body", "key", "topic", "type"]);
  });

  test("fills in retry policy and confirmation rule", () => {
    const created = messageType<Order>("t", { topic: "x", retry: { maxAttempts: 3 }, confirm: { withinMs: 1_000 } });
    expect(created.retry).toEqual({ ...DEFAULT_RETRY_POLICY, maxAttempts: 3 });
    expect(created.confirm).toEqual({ withinMs: 1_000, onTimeout: "resend" });
    expect(messageType<Order>("t", { topic: "x" }).confirm).toBeUndefined();
  });

  test.each([
    [{ retry: { maxAttempts: 0 } }, "retry.maxAttempts is 0"],
    [{ retry: { baseMs: 1.5 } }, "retry.baseMs is 1.5"],
    [{ retry: { factor: 0.5 } }, "retry.factor is 0.5"],
    [{ retry: { tries: 5 } }, "retry.tries is not an option"],
    [{ confirm: { withinMs: 0 } }, "confirm.withinMs is 0"],
    [{ confirm: { withinMs: 5, onTimeout: "retry" } }, "confirm.onTimeout is retry"],
  ])("refuses %j", (options, reason) => {
    expect(() => messageType("t", { topic: "x", ...options } as never)).toThrow(ConfigurationError);
    expect(() => messageType("t", { topic: "x", ...options } as never)).toThrow(reason);
  });
});

describe("types", () => {
  test("the body's type comes from the argument or from the schema's input", () => {
    const fromZod = messageType("t", {
      topic: "x",
      schema: z.object({ id: z.string(), amount: z.number().default(0) }),
      key: (body) => {
        expectTypeOf(body).toEqualTypeOf<{ id: string; amount?: number | undefined }>();
        return body.id;
      },
    });
    expectTypeOf<Parameters<typeof fromZod.message>[0]["body"]>().toEqualTypeOf<{
      id: string;
      amount?: number | undefined;
    }>();
    const fromValibot = messageType("t", { topic: "x", schema: valibot.object({ id: valibot.string() }) });
    expectTypeOf(fromValibot).toEqualTypeOf<MessageType<{ id: string }>>();
    const plain = messageType<Order>("t", { topic: "x" });
    expectTypeOf<{ key: string; body: Order }>().toExtend<Parameters<typeof plain.message>[0]>();
    expectTypeOf(plain.message({ key: "k", body: order })).toExtend<NewMessage<Order>>();
  });

  test("a key must be given unless the type derives it", () => {
    const plain = messageType<Order>("t", { topic: "x" });
    expectTypeOf<{ body: Order }>().not.toExtend<Parameters<typeof plain.message>[0]>();
    const deriving = messageType<Order>("t", { topic: "x", key: ({ id }) => id });
    expectTypeOf<{ body: Order }>().toExtend<Parameters<typeof deriving.message>[0]>();
    expectTypeOf<{ key: string; body: { id: number } }>().not.toExtend<Parameters<typeof plain.message>[0]>();
  });
});

describe("validateWith", () => {
  test("gives what the schema makes of the value, at once where it can", () => {
    const schema = z.object({ id: z.string(), amount: z.number().default(7) });
    expect(validateWith(schema, { id: "a", extra: 1 }, "it")).toEqual({ id: "a", amount: 7 });
    expect(validateWith(valibot.object({ id: valibot.string() }), { id: "a" }, "it")).toEqual({ id: "a" });
  });

  test("waits for an asynchronous schema", async () => {
    const schema = z.string().refine(async (value) => value !== "bad", "is bad");
    const pending = validateWith(schema, "good", "it");
    expect(pending).toBeInstanceOf(Promise);
    expect(await pending).toBe("good");
    await expect(validateWith(schema, "bad", "it")).rejects.toThrow("it does not fit its schema: is bad");
  });

  test("says what is wrong and where, and how much more", () => {
    const schema = z.object({ lines: z.array(z.object({ price: z.number() })) });
    expect(() => validateWith(schema, { lines: [{ price: "1" }] }, "the body of t:k")).toThrow(InvalidMessageError);
    expect(() => validateWith(schema, { lines: [{ price: "1" }] }, "the body of t:k")).toThrow(
      /the body of t:k .*lines\.0\.price: /,
    );
    const many = { lines: Array.from({ length: 9 }, () => ({})) };
    expect(() => validateWith(schema, many, "it")).toThrow("and 4 more");
  });

  test("a schema that throws or rejects is told as what it is", async () => {
    const cause = new Error("boom");
    const throwing: StandardSchema = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: () => {
          throw cause;
        },
      },
    };
    expect(() => validateWith(throwing, 1, "it")).toThrow(InvalidMessageError);
    const rejecting: StandardSchema = {
      "~standard": { version: 1, vendor: "test", validate: () => Promise.reject(cause) },
    };
    await expect(validateWith(rejecting, 1, "it")).rejects.toMatchObject({ code: "INVALID_MESSAGE", cause });
  });
});
