import { describeWithService } from "../services.ts";
import { defineRelayCases } from "./relay.cases.ts";

describeWithService("mariadb", "the relay", () => defineRelayCases("mariadb"));
