import { rocketmqUrl } from "../rocketmq/url-parts.ts";
import { oneOfSetting, optionsOf, textSetting, wholeSetting } from "../settings/url-settings.ts";
import type { RocketmqClassicOptions } from "./options.ts";

const FORM = "rocketmq-classic://nameserver:9876[;nameserver:9876…][/namespace][?tls=true&batch=32]";

const NUMBERS = {
  batch: "batchSize",
  inFlight: "maxInFlight",
  timeoutMs: "requestTimeoutMs",
  connectTimeoutMs: "connectTimeoutMs",
  maxBodyBytes: "maxBodyBytes",
} as const;
const KNOWN = [...Object.keys(NUMBERS), "group", "weakReceipts"];

/**
 * The adapter's page lists the query settings. Keys come from ROWPOST_ROCKETMQ_ACCESS_KEY,
 * ROWPOST_ROCKETMQ_SECRET_KEY and ROWPOST_ROCKETMQ_SESSION_TOKEN. Throws `ConfigurationError` that
 * names any other setting.
 */
export function rocketmqClassicOptionsFromUrl(
  url: string,
  env: Readonly<Record<string, string | undefined>>,
): RocketmqClassicOptions {
  const { hosts, settings, common } = rocketmqUrl(url, { scheme: "rocketmq-classic", form: FORM, known: KNOWN }, env);
  return {
    nameServers: hosts,
    ...common,
    ...optionsOf(settings, NUMBERS, wholeSetting),
    ...optionsOf(settings, { group: "producerGroup" }, textSetting),
    ...optionsOf(settings, { weakReceipts: "weakReceipts" }, oneOfSetting(["fail", "accept"])),
  };
}
