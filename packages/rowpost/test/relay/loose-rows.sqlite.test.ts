import { describe } from "vitest";
import { defineLooseRowsCases } from "./loose-rows.cases.ts";

describe("the relay on SQLite", () => defineLooseRowsCases("sqlite"));
