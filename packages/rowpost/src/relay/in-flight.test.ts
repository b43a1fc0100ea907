import { describe, expect, it } from "vitest";
import { inFlightMessage } from "../../test/relay/scanned-message.ts";
import { createInFlightWindow } from "./in-flight.ts";

const entry = (id: string, shard = 0, orderingKey: string | null = null) => inFlightMessage({ id, shard, orderingKey });

describe("in-flight window", () => {
  it("knows what is under way, by id, key and shard", () => {
    const window = createInFlightWindow();
    window.add([entry("1", 4, "a"), entry("2", 4, "a")]);
    expect([window.size, window.countOf(4), window.keyBusy("a"), window.holds("1")]).toEqual([2, 2, true, true]);
    window.remove([entry("1", 4, "a")]);
    expect([window.countOf(4), window.keyBusy("a")]).toEqual([1, true]);
    window.remove([entry("2", 4, "a")]);
    expect([window.size, window.countOf(4), window.keyBusy("a")]).toEqual([0, 0, false]);
  });

  it("excludes a settled message until a scan that began after it left has returned (rule: listed-in-flight)", () => {
    const window = createInFlightWindow();
    window.add([entry("1")]);
    const during = window.scanStarts();
    window.remove([entry("1", 4, "a")]);
    window.scanReturned(during);
    expect(window.excludes("1")).toBe(true);
    const after = window.scanStarts();
    window.scanReturned(after);
    expect(window.excludes("1")).toBe(false);
  });

  it("tells about each message once when it comes and once when it leaves", () => {
    const told: string[] = [];
    const window = createInFlightWindow({
      added: (messages) => void told.push(...messages.map(({ row }) => `+${row.id}`)),
      removed: (messages) => void told.push(...messages.map(({ row }) => `-${row.id}`)),
    });
    window.add([entry("1")]);
    window.remove([entry("1", 4, "a")]);
    window.remove([entry("1", 4, "a")]);
    expect(told).toEqual(["+1", "-1"]);
  });
});
