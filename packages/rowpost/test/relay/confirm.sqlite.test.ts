import { describe } from "vitest";
import { defineConfirmCases } from "./confirm.cases.ts";

describe("confirmation on SQLite", () => defineConfirmCases("sqlite"));
