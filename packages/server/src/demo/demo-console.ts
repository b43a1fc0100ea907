import { defaultLayout, type MetricsRegistry } from "rowpost";
import { serveConsole } from "../cli/console-options.ts";
import { CommandFailure } from "../failure.ts";
import { httpAddress } from "../http-address.ts";
import type { DemoPlace } from "./place.ts";
import { troubleLogger } from "./snapshot.ts";

export interface DemoConsoleParts {
  readonly place: Pick<DemoPlace, "database" | "address">;
  readonly metrics: MetricsRegistry;
  readonly isReady: () => boolean;
  readonly say: (text: string) => void;
  readonly onTrouble: (text: string) => void;
}

/** Preferred port; any free one if it is taken. */
const PORT = "7070";

export async function openDemoConsole(
  parts: DemoConsoleParts,
  port: string = PORT,
): Promise<{ close(): Promise<void> }> {
  const { isReady, metrics, onTrouble, place, say } = parts;
  try {
    return await serveConsole(
      { listen: httpAddress(port) },
      { ...place, layout: defaultLayout },
      { logger: troubleLogger("console", onTrouble), say, metrics, isReady },
    );
  } catch (error) {
    if (port === "0" || !isPortTaken(error)) throw error;
    return await openDemoConsole(parts, "0");
  }
}

function isPortTaken(error: unknown): boolean {
  if (!(error instanceof CommandFailure) || !(error.cause instanceof Error)) return false;
  return "code" in error.cause && error.cause.code === "EADDRINUSE";
}
