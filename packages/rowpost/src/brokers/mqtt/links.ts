import { closedFailure } from "../publishing/failures.ts";
import { createKeeper, type Keeper } from "../publishing/keeper.ts";
import { loadMqtt } from "./client.ts";
import { type Link, type Opening, openLink } from "./link.ts";
import type { Settings } from "./options.ts";

const PAUSE_MS = 200;
const CLOSED = closedFailure("MQTT");

/** `close` ends all of them; messages in flight are settled as unknown. */
export function createLinks(settings: Settings): Keeper<Link> {
  const openings = new Set<Opening>();
  const keeper = createKeeper<Link>({
    ways: settings.servers.map((address) => async (closing) => {
      const module = await loadMqtt();
      if (closing.aborted) return CLOSED;
      const opening = openLink(module, address, settings);
      openings.add(opening);
      // The client keeps every unacknowledged message of a broken connection.
      void opening.closed.then(() => openings.delete(opening));
      return await opening.link;
    }),
    isUsable: ({ isRetired, over }) => over === undefined && !isRetired,
    pauseMs: PAUSE_MS,
    closed: CLOSED,
  });
  return {
    ...keeper,
    async close() {
      const closing = keeper.close();
      await Promise.all([...openings].map((opening) => opening.end()));
      await closing;
    },
  };
}
