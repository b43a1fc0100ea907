import { describe, expect, it } from "vitest";
import { createInFlightWindow, type WindowEntry } from "./in-flight-window.ts";

function entry(id: string, shard = 0, orderingKey: string | null = null): WindowEntry {
  return {
    epoch: 1,
    message: {
      ...{ id, shard, orderingKey, type: "t", key: id, topic: "orders", body: "{}", headers: null, contentType: null },
      ...{
        retryCount: 0,
        deliveryCount: 0,
        lockVersion: 0,
        deliverAtMs: null,
        resend: false,
        waitingMs: 0,
        due: false,
      },
    },
  };
}

describe("in-flight window", () => {
  it("knows what is under way, by id, key and shard", () => {
    const window = createInFlightWindow();
    window.add(entry("1", 4, "a"));
    window.add(entry("2", 4, "a"));
    expect([window.size, window.countOf(4), window.keyBusy("a"), window.holds("1")]).toEqual([2, 2, true, true]);
    window.remove("1");
    expect([window.countOf(4), window.keyBusy("a")]).toEqual([1, true]);
    window.remove("2");
    expect([window.size, window.countOf(4), window.keyBusy("a")]).toEqual([0, 0, false]);
  });

  it("excludes a settled message until a scan that began after it left has returned (rule R8)", () => {
    const window = createInFlightWindow();
    window.add(entry("1"));
    const during = window.scanStarts();
    window.remove("1");
    window.scanReturned(during);
    expect(window.excludes("1")).toBe(true);
    const after = window.scanStarts();
    window.scanReturned(after);
    expect(window.excludes("1")).toBe(false);
  });

  it("tells about each message once when it comes and once when it leaves", () => {
    const told: string[] = [];
    const window = createInFlightWindow({
      added: ({ message }) => void told.push(`+${message.id}`),
      removed: ({ message }) => void told.push(`-${message.id}`),
    });
    window.add(entry("1"));
    window.remove("1");
    window.remove("1");
    expect(told).toEqual(["+1", "-1"]);
  });
});
