import { describe } from "vitest";
import { defineIsolationCases } from "./isolation.cases.ts";

describe("isolation on SQLite", () => defineIsolationCases("sqlite"));
