import { describe } from "vitest";
import { defineRelayCases } from "./relay.cases.ts";

describe("the relay on SQLite", () => defineRelayCases("sqlite"));
