/** Compile-time checks of bodies; only the last line runs. */
import { expectTypeOf, test } from "vitest";
import { z } from "zod";
import type { NewMessage } from "../message/message.ts";
import { messageType } from "../message/message-type.ts";
import type { EnqueueStatus } from "./message-writer.ts";
import type { Enqueueable, EnqueueableList, Outbox } from "./outbox.ts";

interface Line {
  readonly sku: string;
  readonly parts?: readonly Line[];
}
interface Order {
  readonly id: string;
  readonly at: Date;
  readonly lines: Line[];
  readonly note?: string | null | undefined;
}

test("a BigInt in a body does not compile, wherever it stands", () => {
  expectTypeOf<NewMessage<bigint>>().not.toExtend<Enqueueable<bigint>>();
  expectTypeOf<NewMessage<{ id: bigint }>>().not.toExtend<Enqueueable<{ id: bigint }>>();
  interface Deep {
    readonly lines: { readonly id: number | bigint }[];
  }
  expectTypeOf<NewMessage<Deep>>().not.toExtend<Enqueueable<Deep>>();
  expectTypeOf<NewMessage<{ id: bigint }>[]>().not.toExtend<EnqueueableList<{ id: bigint }[]>>();
  type Two = readonly [string, { readonly id: bigint }];
  expectTypeOf<[NewMessage<Two[0]>, NewMessage<Two[1]>]>().not.toExtend<EnqueueableList<Two>>();
  // The same without the BigInt, to prove that it is the cause above.
  expectTypeOf<NewMessage<{ id: string }>>().toExtend<Enqueueable<{ id: string }>>();
  expectTypeOf<NewMessage<{ id: string }>[]>().toExtend<EnqueueableList<{ id: string }[]>>();
});

test("every other body compiles, in one message and in several", () => {
  const enqueue = null as unknown as Outbox["enqueue"];
  const envelope = { type: "t", key: "k", topic: "x" } as const;
  const order: Order = { id: "1", at: new Date(0), lines: [{ sku: "a" }] };
  const money = { amount: 1n, toJSON: () => "1" };
  const declared = messageType("t", { topic: "x", schema: z.object({ id: z.bigint().transform(String) }) });
  const never = () =>
    [
      enqueue({}, { ...envelope, body: order }),
      enqueue({}, { ...envelope, body: { order, money, tags: ["a", 1, true, null] } }),
      enqueue({}, { ...envelope, body: new Uint8Array(3) }),
      enqueue({}, { ...envelope, body: null }),
      enqueue({}, { ...envelope, body: JSON.parse("{}") }),
      enqueue({}, { ...envelope, body: {} as Record<string, unknown> }),
      enqueue({}, { ...envelope, body: order } as NewMessage),
      enqueue({}, { ...envelope, body: order } as NewMessage<Order>),
      enqueue({}, declared.message({ key: "k", body: { id: 1n } })),
    ] as const;
  const several = () =>
    [
      enqueue({}, [
        { ...envelope, body: order },
        { ...envelope, body: 5 },
      ]),
      enqueue({}, [] as readonly NewMessage[]),
      enqueue(
        {},
        [order].map((body) => ({ ...envelope, body })),
      ),
      enqueue({}, [declared.message({ key: "k", body: { id: 1n } }), { ...envelope, body: "a" }]),
    ] as const;
  expectTypeOf(never).returns.items.resolves.toEqualTypeOf<EnqueueStatus>();
  expectTypeOf(several).returns.items.resolves.toEqualTypeOf<EnqueueStatus[]>();
});
