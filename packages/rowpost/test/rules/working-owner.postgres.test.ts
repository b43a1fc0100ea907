import { describeWithService } from "../services.ts";
import { defineWorkingOwnerCases } from "./working-owner.cases.ts";

describeWithService("postgres", "a relay that does not do its work", () => defineWorkingOwnerCases("postgres"));
