import { describe } from "vitest";
import { defineTurnCases } from "./turns.cases.ts";

describe("turns on MariaDB", () => defineTurnCases("mariadb"));
