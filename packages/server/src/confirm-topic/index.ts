/**
 * `--confirmations TOPIC`: the daemon reads confirmations from a topic, for consumers that reach
 * neither the database nor the daemon (docs/confirmation.md).
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "rowpost";
import type { Consumption } from "rowpost/consume";
import { createReports, type ReportParts } from "./reports.ts";
import type { ConfirmSource } from "./source.ts";
import { openSource } from "./sources.ts";

export type { ConfirmSource } from "./source.ts";

export interface ConfirmTopicOptions extends ReportParts {
  readonly source: ConfirmSource;
  readonly database: Database;
}

const AGAIN_MS = 5_000;

/**
 * Reads until it is closed. An unreadable topic does not stop the relay: it is logged once and
 * retried every 5 s.
 */
export function readConfirmTopic({ source, database, ...parts }: ConfirmTopicOptions): Consumption {
  const { logger } = parts;
  const take = createReports(parts);
  const stop = new AbortController();
  const about = { topic: source.topic, group: source.group, broker: source.label };
  const closed = { drained: true };

  async function begin(): Promise<Consumption | undefined> {
    for (let failures = 0; !stop.signal.aborted; failures += 1) {
      try {
        const consumption = await openSource(source, { database, logger, take });
        logger.info("reads confirmations", about);
        return consumption;
      } catch (error) {
        if (failures === 0)
          logger.error("the confirmation topic cannot be read; it is tried again", { ...about, error });
        await sleep(AGAIN_MS, undefined, { signal: stop.signal }).catch(() => undefined);
      }
    }
    return undefined;
  }

  const running = begin();
  return {
    async close() {
      stop.abort();
      return (await (await running)?.close()) ?? closed;
    },
  };
}
