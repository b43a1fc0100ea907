import { describe } from "vitest";
import { defineWorkingOwnerCases } from "./working-owner.cases.ts";

describe("a relay that does not do its work on sqlite", () => defineWorkingOwnerCases("sqlite"));
