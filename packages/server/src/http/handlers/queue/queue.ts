import type { ConsoleParts, HandlersOf } from "../../call.ts";
import type { QUEUE_ROUTES } from "../../queue-routes.ts";
import { queueHandHandlers } from "./hand.ts";
import { queueLookHandlers } from "./look.ts";
import { queueRewindHandlers } from "./rewind.ts";

export function queueHandlers(parts: ConsoleParts): HandlersOf<keyof typeof QUEUE_ROUTES> {
  return { ...queueLookHandlers(parts), ...queueHandHandlers(), ...queueRewindHandlers() };
}
