import { describeWithService } from "../services.ts";
import { defineRelayCases } from "./relay.cases.ts";

describeWithService("postgres", "the relay", () => defineRelayCases("postgres"));
