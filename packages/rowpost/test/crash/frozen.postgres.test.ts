import { describeWithService } from "../services.ts";
import { describeFrozen } from "./frozen.cases.ts";

describeWithService("postgres", "two relays", () => describeFrozen("postgres"));
