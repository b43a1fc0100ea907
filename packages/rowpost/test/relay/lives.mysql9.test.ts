import { describeWithService } from "../services.ts";
import { defineLivesCases } from "./lives.cases.ts";

describeWithService("mysql9", "lives of messages", () => defineLivesCases("mysql9", 60));
