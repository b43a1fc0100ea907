import { describeWithService } from "../services.ts";
import { defineCrashCases } from "./crash.cases.ts";

describeWithService("postgres", "a relay", () => {
  defineCrashCases("postgres", { sendingMark: "on" });
  defineCrashCases("postgres", { sendingMark: "off" });
});
