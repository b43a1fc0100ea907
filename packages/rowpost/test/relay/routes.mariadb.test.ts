import { describeWithService } from "../services.ts";
import { defineRoutesCases } from "./routes.cases.ts";

describeWithService("mariadb", "routes", () => defineRoutesCases("mariadb"));
