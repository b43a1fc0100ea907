import { describe } from "vitest";
import { defineLivesCases } from "./lives.cases.ts";

describe("lives of messages on SQLite", () => defineLivesCases("sqlite", 60));
