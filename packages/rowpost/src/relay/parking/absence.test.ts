import { expect, it } from "vitest";
import type { PublishFailed, PublishResult } from "../../brokers/broker.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import { createAbsence } from "./absence.ts";

const SENT: PublishResult = { status: "sent", messageId: "1" };
const failure = (absent: PublishFailed["absent"]): PublishFailed => ({
  ...({ status: "failed", scope: "message", retriable: true, code: "X", reason: "x" } as const),
  absent,
});

function setUp() {
  const clock = createManualClock();
  const absence = createAbsence(clock);
  const scope = (id: string, result: PublishResult, topic = "t") => {
    const [meaning] = absence.judge(topic, [id], [result]);
    return meaning?.status === "failed" ? meaning.scope : meaning?.status;
  };
  return { clock, scope };
}

it("what is away is the destination, for hours; one that fails while others go is the message", async () => {
  const { clock, scope } = setUp();
  for (let hour = 0; hour < 5; hour += 1) {
    expect(scope("1", failure("away"))).toBe("destination");
    await clock.advance(3_600_000);
  }
  expect(scope("2", SENT)).toBe("sent");
  await clock.advance(1_000);
  expect(scope("1", failure("away"))).toBe("message");
  await clock.advance(1_000);
  expect(scope("1", failure("away"))).toBe("destination");
  expect(scope("3", SENT, "another")).toBe("sent");
  expect(scope("1", failure("away"))).toBe("destination");
});

it("what is missing is waited for five minutes, and anew once it was there", async () => {
  const { clock, scope } = setUp();
  expect(scope("1", failure("missing"))).toBe("destination");
  await clock.advance(299_000);
  expect(scope("2", failure("missing"))).toBe("destination");
  await clock.advance(1_000);
  expect([scope("1", failure("missing")), scope("2", failure("away"))]).toEqual(["message", "destination"]);
  expect(scope("3", SENT)).toBe("sent");
  expect(scope("4", failure("missing"))).toBe("destination");
});

it("other failures stay what they are", () => {
  const { scope } = setUp();
  expect(scope("1", failure(undefined))).toBe("message");
  expect(scope("1", { ...failure("missing"), scope: "unknown" })).toBe("unknown");
});
