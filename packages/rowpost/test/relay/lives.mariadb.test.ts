import { describeWithService } from "../services.ts";
import { defineLivesCases } from "./lives.cases.ts";

describeWithService("mariadb", "lives of messages", () => defineLivesCases("mariadb", 60));
