import { oneOfSetting, optionsOf, wholeSetting } from "../settings/url-settings.ts";
import type { RocketmqOptions } from "./options.ts";
import { rocketmqUrl } from "./url-parts.ts";

const FORM = "rocketmq://host:port[,host:port…][/namespace][?tls=true&batch=32]";

const NUMBERS = { batch: "batchSize", inFlight: "maxInFlight", timeoutMs: "requestTimeoutMs" } as const;
const KNOWN = [...Object.keys(NUMBERS), "unordered"];

/**
 * The adapter's page lists the query settings. Keys come from ROWPOST_ROCKETMQ_ACCESS_KEY,
 * ROWPOST_ROCKETMQ_SECRET_KEY and ROWPOST_ROCKETMQ_SESSION_TOKEN. Throws `ConfigurationError` that
 * names any other setting.
 */
export function rocketmqOptionsFromUrl(
  url: string,
  env: Readonly<Record<string, string | undefined>>,
): RocketmqOptions {
  const { hosts, settings, common } = rocketmqUrl(url, { scheme: "rocketmq", form: FORM, known: KNOWN }, env);
  return {
    endpoints: hosts,
    ...common,
    ...optionsOf(settings, NUMBERS, wholeSetting),
    ...optionsOf(settings, { unordered: "unorderedTopic" }, oneOfSetting(["warn", "publish", "fail"])),
  };
}
