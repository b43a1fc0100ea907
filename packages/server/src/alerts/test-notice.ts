/** A notice that tells nothing, for who sets a channel up. */
import { randomUUID } from "node:crypto";
import { createChannel } from "./channels/send.ts";
import type { AlertConfig } from "./config.ts";
import type { ChannelAnswer, NoticeItem } from "./state.ts";

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
