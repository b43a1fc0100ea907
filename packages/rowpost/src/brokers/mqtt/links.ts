/** The connection in use: made at the first use, replaced when it broke or fell silent. */
import type { PublishFailed } from "../broker.ts";
import { closedFailure, unusableFailure } from "../publishing/failures.ts";
import { loadMqtt } from "./client.ts";
import { type Link, type Opening, openLink } from "./link.ts";
import type { Settings } from "./options.ts";

export interface Links {
  /** The link, or why there is none. Never rejects; takes as long as connecting does. */
  link(): Promise<Link | PublishFailed>;
  /** Ends them; what is on its way is settled as unknown. */
  close(): Promise<void>;
}

/** A failed connect stands for the next ones so long, so that nobody knocks without pause. */
const RETRY_AFTER_MS = 200;

const CLOSED = closedFailure("MQTT");

export function createLinks(settings: Settings): Links {
  const openings = new Set<Opening>();
  let link: Link | undefined;
  let finding: Promise<Link | PublishFailed> | undefined;
  let lastFailure: { readonly failure: PublishFailed; readonly until: number } | undefined;
  let isClosed = false;
  /** The server that is tried first: the one that answered last. */
  let first = 0;

  const current = (): Link | undefined => (link?.over === undefined && link?.isRetired === false ? link : undefined);

  /** Each server once, beginning with the one that worked. */
  async function find(): Promise<Link | PublishFailed> {
    if (lastFailure !== undefined && performance.now() < lastFailure.until) return lastFailure.failure;
    let failure: PublishFailed = CLOSED;
    try {
      const module = await loadMqtt();
      for (let turn = 0; turn < settings.servers.length && !isClosed; turn += 1) {
        const index = (first + turn) % settings.servers.length;
        const address = settings.servers[index];
        if (address === undefined) break;
        const opening = openLink(module, address, settings);
        openings.add(opening);
        // Of one that broke the client keeps everything that it had no receipt for.
        void opening.closed.then(() => openings.delete(opening));
        const found = await opening.link;
        if (!("scope" in found)) {
          first = index;
          link = found;
          return found;
        }
        failure = found;
      }
    } catch (error) {
      failure = unusableFailure(error);
    }
    lastFailure = { failure, until: performance.now() + RETRY_AFTER_MS };
    return failure;
  }

  return {
    link() {
      if (isClosed) return Promise.resolve(CLOSED);
      const usable = current();
      if (usable !== undefined) return Promise.resolve(usable);
      finding ??= find().finally(() => {
        finding = undefined;
      });
      return finding;
    },
    async close() {
      isClosed = true;
      await Promise.all([...openings].map((opening) => opening.end()));
      await finding;
    },
  };
}
