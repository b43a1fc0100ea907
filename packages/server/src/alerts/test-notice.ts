import { randomUUID } from "node:crypto";
import { createChannel } from "./channels/send.ts";
import type { AlertConfig } from "./config.ts";
import type { NoticeItem } from "./state.ts";

/** The channels of `--alerts`. */
export interface AlertChannels {
  /** Names in the file. */
  readonly names: readonly string[];
  /** Sends a test notice to one of them. Never rejects: resolves to the error. */
  test(name: string, source: string): Promise<{ readonly at: string; readonly ok: boolean; readonly answer: string }>;
}

/** A test reaches a channel whatever its lowest severity. */
export function alertChannels({ channels, consoleUrl, secrets }: AlertConfig): AlertChannels {
  return {
    names: channels.map(({ name }) => name),
    async test(name, source) {
      const at = new Date().toISOString();
      const found = channels.find((each) => each.name === name);
      if (found === undefined) return { at, ok: false, answer: `there is no channel ${name}` };
      const config = { ...found, from: "info" as const };
      const channel = createChannel({ config, consoleUrl, secrets, monotonicMs: () => performance.now() });
      const item: NoticeItem = {
        rule: "test",
        subject: "",
        severity: "info",
        kind: "firing",
        since: at,
        forMs: 0,
        value: 0,
        peak: 0,
        facts: {},
      };
      return await channel.send({ id: `test_${randomUUID()}`, at, items: [item] }, source);
    },
  };
}
