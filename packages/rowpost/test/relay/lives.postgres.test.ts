import { describeWithService } from "../services.ts";
import { defineLivesCases } from "./lives.cases.ts";

describeWithService("postgres", "lives of messages", () => defineLivesCases("postgres", 60));
