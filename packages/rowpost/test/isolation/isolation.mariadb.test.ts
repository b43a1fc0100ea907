import { describeWithService } from "../services.ts";
import { defineIsolationCases } from "./isolation.cases.ts";

describeWithService("mariadb", "isolation", () => defineIsolationCases("mariadb"));
