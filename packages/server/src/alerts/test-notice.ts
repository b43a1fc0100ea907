/** A notice that tells nothing, for who sets a channel up. */
import { randomUUID } from "node:crypto";
import { createChannel } from "./channels/send.ts";
import type { AlertConfig } from "./config.ts";
import type { ChannelAnswer, NoticeItem } from "./state.ts";

/** The channels of `--alerts`, to try them. */
export interface AlertChannels {
  /** As the file calls them. */
  readonly names: readonly string[];
  /** Sends a test notice to one of them. Never rejects: what went wrong is the answer. */
  test(name: string, source: string): Promise<{ readonly at: string; readonly ok: boolean; readonly answer: string }>;
}

/** Makes them from the file. */
export function alertChannels(config: AlertConfig): AlertChannels {
  return {
    names: config.channels.map(({ name }) => name),
    async test(name, source) {
      const answer = await sendTest(config, name, source);
      return answer ?? { at: new Date().toISOString(), ok: false, answer: `there is no channel ${name}` };
    },
  };
}

/** Sends it. Undefined: there is no such channel. Never rejects. */
export async function sendTest(config: AlertConfig, name: string, source: string): Promise<ChannelAnswer | undefined> {
  const found = config.channels.find((each) => each.name === name);
  if (found === undefined) return undefined;
  const { consoleUrl, secrets } = config;
  // A test reaches the channel whatever severity it is told from.
  const channel = createChannel({
    ...{ config: { ...found, from: "info" as const }, consoleUrl, secrets },
    monotonicMs: () => performance.now(),
  });
  const at = new Date().toISOString();
  const item: NoticeItem = {
    ...{ rule: "test", subject: "", severity: "info", kind: "firing", since: at, forMs: 0, value: 0, peak: 0 },
    facts: {},
  };
  return await channel.send({ id: `test_${randomUUID()}`, at, items: [item] }, source);
}
