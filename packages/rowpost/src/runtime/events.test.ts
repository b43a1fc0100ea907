import { describe, expect, test } from "vitest";
import { createEventEmitter } from "./events.ts";
import type { LogFields } from "./logger.ts";
import { silentLogger } from "./logger.ts";

interface Events {
  sent: { readonly id: string };
  stopped: undefined;
}

function recordingLogger() {
  const errors: (LogFields | undefined)[] = [];
  return {
    errors,
    logger: { ...silentLogger, error: (_message: string, fields?: LogFields) => void errors.push(fields) },
  };
}

describe("event emitter", () => {
  test("runs the listeners of the event in the order in which they came, with the payload", () => {
    const events = createEventEmitter<Events>();
    const seen: string[] = [];
    events.on("sent", ({ id }) => void seen.push(`first ${id}`));
    events.on("sent", ({ id }) => void seen.push(`second ${id}`));
    events.on("stopped", () => void seen.push("stopped"));
    events.emit("sent", { id: "1" });
    expect(seen).toEqual(["first 1", "second 1"]);
  });

  test("on returns what takes exactly that one off", () => {
    const events = createEventEmitter<Events>();
    let runs = 0;
    const listener = (): void => {
      runs += 1;
    };
    const off = events.on("stopped", listener);
    events.on("stopped", listener);
    off();
    off();
    events.emit("stopped", undefined);
    expect(runs).toBe(1);
    expect([events.listenerCount("stopped"), events.listenerCount("sent")]).toEqual([1, 0]);
  });

  test("a listener that throws or rejects is logged and stops nobody", async () => {
    const { errors, logger } = recordingLogger();
    const events = createEventEmitter<Events>({ logger });
    let reached = false;
    events.on("stopped", () => {
      throw new Error("thrown");
    });
    events.on("stopped", () => Promise.reject(new Error("rejected")));
    events.on("stopped", () => {
      reached = true;
    });
    events.emit("stopped", undefined);
    await Promise.resolve();
    expect(reached).toBe(true);
    expect(errors.map((fields) => String(fields?.["error"]))).toEqual(["Error: thrown", "Error: rejected"]);
    expect(errors[0]?.["event"]).toBe("stopped");
  });

  test("a listener may take others off, or add some, while it runs", () => {
    const events = createEventEmitter<Events>();
    const seen: string[] = [];
    const offs: (() => void)[] = [];
    events.on("stopped", () => {
      seen.push("first");
      for (const off of offs) off();
      events.on("stopped", () => void seen.push("added"));
    });
    offs.push(events.on("stopped", () => void seen.push("second")));
    events.emit("stopped", undefined);
    expect(seen).toEqual(["first", "second"]);
    events.emit("stopped", undefined);
    expect(seen).toEqual(["first", "second", "first", "added"]);
  });
});
