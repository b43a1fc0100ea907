import { describe } from "vitest";
import { openStoreBench } from "../contracts/store-contract/bench.ts";
import { runStoreCase, storeContract, storeSkipReason } from "../contracts/store-contract/contract.ts";
import type { StoreHarness } from "../contracts/store-contract/harness.ts";
import { describeWithService, sampled } from "../services.ts";
import { bindContract } from "./bind-contract.ts";
import { LAYOUTS, mysqlHarness, postgresHarness, sqliteHarness } from "./store-harnesses.ts";

/**
 * Layouts differ in names and columns; what they make of a statement MariaDB shows. Every statement
 * runs on MySQL 8 in statements.test.ts, and its flows are those of MySQL 9.
 */
const DEFAULT = LAYOUTS.slice(0, 1);
const SEEDS = LAYOUTS.slice(1);

describeWithService(
  sampled<"mariadb" | "mysql9" | "mysql8">(["mariadb", "mysql9"], ["mysql8"]),
  "store contract",
  ({ name }) => {
    const layouts = { mariadb: LAYOUTS, mysql9: DEFAULT, mysql8: LAYOUTS }[name];
    for (const layout of layouts)
      bindStoreContract(`${layout.name}, mysql2`, () => mysqlHarness(name, "mysql2", layout));
  },
);

describeWithService("mariadb", "store contract", ({ name }) => {
  for (const layout of DEFAULT)
    bindStoreContract(`${layout.name}, mariadb driver`, () => mysqlHarness(name, "mariadb", layout));
});

describeWithService("postgres", "store contract", () => {
  for (const layout of sampled(DEFAULT, SEEDS)) bindStoreContract(layout.name, () => postgresHarness(layout));
});

describe("store contract on sqlite", () => {
  for (const kind of sampled<"file" | "memory">(["file"], ["memory"])) {
    const layouts = kind === "file" ? sampled(DEFAULT, SEEDS) : DEFAULT;
    for (const layout of layouts) bindStoreContract(`${layout.name}, ${kind}`, () => sqliteHarness(kind, layout));
  }
});

function bindStoreContract(title: string, createHarness: () => StoreHarness | Promise<StoreHarness>): void {
  bindContract(title, createHarness, {
    cases: storeContract,
    openBench: openStoreBench,
    skipReason: storeSkipReason,
    runCase: runStoreCase,
  });
}
