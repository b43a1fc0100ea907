import { describeWithService } from "../services.ts";
import { describeFrozen } from "./frozen.cases.ts";

describeWithService("mariadb", "two relays", () => describeFrozen("mariadb"));
