import { describe, expect, it } from "vitest";
import { inFlightMessage } from "../../../test/relay/scanned-message.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import type { InFlight } from "../in-flight.ts";
import { createOutlets } from "./outlets.ts";
import { createRoom, type Room } from "./room.ts";
import { createTopicBreaker } from "./topic-breaker.ts";

const ROUTES = { brokers: ["a", "b"], brokerOf: (topic: string) => (topic.startsWith("b") ? "b" : "a") };

function bench({ routes, windowBytes = 1_000_000 }: { routes?: typeof ROUTES; windowBytes?: number } = {}) {
  const clock = createManualClock();
  const outlets = createOutlets({ broker: { name: "broker", routes }, clock, windowSize: 100 });
  const breaker = createTopicBreaker(clock);
  return { clock, outlets, breaker, room: createRoom({ outlets, breaker, batchSize: 40, windowBytes }) };
}

let nextId = 0;
function messages(topic: string, count: number, bodyBytes = 2): InFlight[] {
  return Array.from({ length: count }, () => inFlightMessage({ id: String(++nextId), topic, bodyBytes }));
}

/** Admits and enters; returns how many went. */
function enter(room: Room, list: readonly InFlight[]): number {
  const { go } = room.admit(list);
  room.entered(go);
  return go.length;
}

describe("room (rule: isolation)", () => {
  it("gives one topic the whole width, and a hung one leaves as much to the others", () => {
    const { room } = bench();
    expect(enter(room, messages("hung", 300))).toBe(100);
    expect([room.of("hung"), room.closed()]).toEqual([0, ["hung"]]);
    expect(enter(room, messages("second", 300))).toBe(50);
    expect(enter(room, messages("third", 300))).toBe(25);
    expect(room.of("fourth")).toBeGreaterThan(0);
  });

  it("opens a busy topic again when a part of a batch is free, not for every single place", () => {
    const { room } = bench();
    const all = messages("orders", 100);
    enter(room, all);
    room.left(all.slice(0, 9));
    expect(room.of("orders")).toBe(0);
    room.left(all.slice(9, 10));
    expect(room.of("orders")).toBe(10);
    room.left(all.slice(10));
    expect([room.of("orders"), room.closed()]).toEqual([100, []]);
  });

  it("counts bytes as well, and stops a topic at the first message that does not fit", () => {
    const { room } = bench({ windowBytes: 100 });
    const [small, large, behind] = [...messages("a", 1, 60), ...messages("a", 1, 60), ...messages("a", 1, 1)];
    const other = messages("b", 1, 20);
    const { go, left } = room.admit([small, large, behind, ...other] as InFlight[]);
    expect([go, left]).toEqual([
      [small, ...other],
      [large, behind],
    ]);
  });

  it("lets a body that is larger than any share go when little else is under way, one at a time", () => {
    const { room } = bench({ windowBytes: 100 });
    expect(enter(room, messages("large", 2, 5_000))).toBe(1);
    expect(enter(room, messages("large2", 1, 5_000))).toBe(0);
    expect(room.bytesOf("large")).toBe(0);
  });

  it("closes a resting topic and no other", () => {
    const { room, breaker } = bench();
    breaker.report({
      topic: "away",
      sent: 0,
      destination: 1,
      unknown: 0,
      retriable: 0,
      retryAfterMs: undefined,
      reason: "",
    });
    expect([room.of("away"), room.of("orders"), room.closed()]).toEqual([0, 100, ["away"]]);
  });

  it("probes a broker that is away with one message, and with another topic's when that one hangs", async () => {
    const { room, outlets, clock } = bench();
    outlets.all[0]?.gate.unreachable("ECONNREFUSED");
    expect(room.away).toBe(true);
    await clock.advance(1_000);
    expect(enter(room, [...messages("hung", 3), ...messages("orders", 3)])).toBe(1);
    expect([room.of("hung"), room.of("orders")]).toEqual([0, 0]);
    await clock.advance(1_000);
    expect([room.of("hung"), room.of("orders")]).toEqual([0, 1]);
  });

  it("keeps the places of one broker from the topics of another", () => {
    const { room } = bench({ routes: ROUTES });
    for (let topic = 0; topic < 20; topic += 1) enter(room, messages(`a${topic}`, 300));
    expect(room.of("b1")).toBe(100);
  });
});
