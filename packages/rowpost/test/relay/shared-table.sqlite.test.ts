import { describe } from "vitest";
import { defineSharedTableCases } from "./shared-table.cases.ts";

describe("relays that share a table on SQLite", () => defineSharedTableCases("sqlite"));
