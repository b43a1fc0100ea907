import { describe, expect, it } from "vitest";
import { memory } from "../brokers/memory.ts";
import { sqlite } from "../databases/sqlite/index.ts";
import { messageType } from "../message/message-type.ts";
import { type RelayOptions, relaySettings } from "./options.ts";

const TEN_YEARS_MS = 3_650 * 86_400_000;

describe("options of a relay", () => {
  const settings = (given: Partial<RelayOptions>) =>
    relaySettings({ database: sqlite({ file: ":memory:" }), broker: memory(), ...given });
  const orders = (given: object) => messageType("order", { topic: "orders", ...given });

  it("takes waits as they are that a row can hold", () => {
    const retry = { maxMs: TEN_YEARS_MS, slowRetryEveryMs: TEN_YEARS_MS };
    const made = settings({ retry, types: [orders({ confirm: { withinMs: TEN_YEARS_MS } })] });
    expect([made.policyOf("other"), made.confirmOf("order")]).toMatchObject([retry, { withinMs: TEN_YEARS_MS }]);
  });

  it.each([
    ["retry.maxMs", { retry: { maxMs: TEN_YEARS_MS + 1 } }],
    ["retry.slowRetryEveryMs", { retry: { slowRetryEveryMs: Number.POSITIVE_INFINITY } }],
    ["retry.slowRetryEveryMs", { types: [orders({ retry: { slowRetryEveryMs: TEN_YEARS_MS + 1 } })] }],
    ["confirm.withinMs", { types: [orders({ confirm: { withinMs: TEN_YEARS_MS + 1 } })] }],
  ])("refuses %s that is longer", (name, given) => {
    expect(() => settings(given)).toThrow(expect.objectContaining({ code: "CONFIGURATION" }));
    expect(() => settings(given)).toThrow(name);
  });
});
