import { describeWithService } from "../services.ts";
import { defineCrashCases } from "./crash.cases.ts";

describeWithService("mariadb", "a relay", () => {
  defineCrashCases("mariadb", { sendingMark: "on" });
  defineCrashCases("mariadb", { sendingMark: "off" });
});
