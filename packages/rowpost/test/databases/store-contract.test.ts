import { describe } from "vitest";
import {
  openStoreBench,
  runStoreCase,
  type StoreHarness,
  storeContract,
  storeSkipReason,
} from "../../src/testing/index.ts";
import { describeWithService } from "../services.ts";
import { bindContract } from "./bind-contract.ts";
import { LAYOUTS, mysqlHarness, postgresHarness, sqliteHarness } from "./store-harnesses.ts";

// The tables of the seeds on the MySQL that people have them on: nothing of theirs needs MySQL 9.
describeWithService(["mariadb", "mysql9", "mysql8"], "store contract", ({ name }) => {
  for (const layout of name === "mysql9" ? LAYOUTS.slice(0, 1) : LAYOUTS)
    bindStoreContract(`${layout.name}, mysql2`, () => mysqlHarness(name, "mysql2", layout));
});

describeWithService("mariadb", "store contract", ({ name }) => {
  for (const layout of LAYOUTS.slice(0, 1)) {
    bindStoreContract(`${layout.name}, mariadb driver`, () => mysqlHarness(name, "mariadb", layout));
  }
});

describeWithService("postgres", "store contract", () => {
  for (const layout of LAYOUTS) bindStoreContract(layout.name, () => postgresHarness(layout));
});

describe("store contract on sqlite", () => {
  for (const layout of LAYOUTS) bindStoreContract(`${layout.name}, file`, () => sqliteHarness("file", layout));
  for (const layout of LAYOUTS.slice(0, 1))
    bindStoreContract(`${layout.name}, :memory:`, () => sqliteHarness("memory", layout));
});

function bindStoreContract(title: string, createHarness: () => StoreHarness | Promise<StoreHarness>): void {
  bindContract(title, createHarness, {
    cases: storeContract,
    openBench: openStoreBench,
    skipReason: storeSkipReason,
    runCase: runStoreCase,
  });
}
