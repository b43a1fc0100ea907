import { describe } from "vitest";
import { defineSteppedClockCases } from "./stepped-clock.cases.ts";

describe("a database clock that was set back on SQLite", () => defineSteppedClockCases("sqlite"));
