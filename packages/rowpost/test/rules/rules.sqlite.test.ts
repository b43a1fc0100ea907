import { describe } from "vitest";
import { defineRuleCases } from "./rules.cases.ts";

describe("the rules on SQLite", () => defineRuleCases("sqlite"));
