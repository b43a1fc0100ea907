import { describe } from "vitest";
import { defineRoutesCases } from "./routes.cases.ts";

describe("routes on SQLite", () => defineRoutesCases("sqlite"));
