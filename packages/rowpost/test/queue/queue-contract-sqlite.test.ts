import { describe } from "vitest";
import { bindQueueContract } from "./bind-queue-contract.ts";
import { sqliteHarness } from "./queue-harnesses.ts";

describe("queue contract on sqlite", () => {
  bindQueueContract("file", () => sqliteHarness("file"));
  bindQueueContract(":memory:", () => sqliteHarness("memory"));
});
