/** Picks the client: the one passed in, or the installed one that runs on this Node.js. */

import { ConfigurationError, MissingPeerError } from "../../runtime/errors.ts";
import type { Driver } from "./driver.ts";
import { type KafkajsModule, kafkajsDriver } from "./kafkajs.ts";
import type { Settings } from "./options.ts";
import { type PlatformaticModule, platformaticDriver } from "./platformatic.ts";

const KAFKAJS_RANGE = "^2.2.4";
const PLATFORMATIC_RANGE = ">=2.10.0 <3";

/** Rejects with {@link MissingPeerError} or {@link ConfigurationError}. */
export async function loadDriver(settings: Settings): Promise<Driver> {
  const { given, driver } = settings;
  if (given?.kind === "kafkajs") return kafkajsDriver(undefined, settings);
  if (given?.kind === "platformatic") return platformaticDriver(undefined, settings);
  if (driver !== "kafkajs" && runsPlatformatic(process.versions.node)) {
    const module = await installed(import("@platformatic/kafka"));
    if (module.found) return platformaticDriver(module.value as PlatformaticModule, settings);
    if (driver === "platformatic") {
      throw new MissingPeerError("@platformatic/kafka", "the Kafka broker", {
        range: PLATFORMATIC_RANGE,
        cause: module.error,
      });
    }
  } else if (driver === "platformatic") {
    throw new ConfigurationError(
      `@platformatic/kafka needs Node.js 22.22 or newer, and this is ${process.versions.node}; leave driver out, and npm install "kafkajs@${KAFKAJS_RANGE}"`,
    );
  }
  const module = await installed(import("kafkajs"));
  if (module.found) return kafkajsDriver((module.value as { readonly default: KafkajsModule }).default, settings);
  throw new MissingPeerError(
    "kafkajs",
    `the Kafka broker (on Node.js 22.22 and newer rather with @platformatic/kafka: npm install "@platformatic/kafka@${PLATFORMATIC_RANGE}")`,
    { range: KAFKAJS_RANGE, cause: module.error },
  );
}

/** What `engines` of \@platformatic/kafka 2.12 says. */
export function runsPlatformatic(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 22);
}

type Module = { readonly found: true; readonly value: unknown } | { readonly found: false; readonly error: unknown };

async function installed(loading: Promise<unknown>): Promise<Module> {
  try {
    return { found: true, value: await loading };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND") return { found: false, error };
    throw error;
  }
}
