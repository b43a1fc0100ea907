import { describe } from "vitest";
import { sampled } from "../services.ts";
import { bindQueueContract } from "./bind-queue-contract.ts";
import { sqliteHarness } from "./queue-harnesses.ts";

describe("queue contract on sqlite", () => {
  for (const kind of sampled<"file" | "memory">(["file"], ["memory"]))
    bindQueueContract(kind, () => sqliteHarness(kind));
});
