import type { ChannelKind } from "./channel.ts";
import { dingtalk } from "./dingtalk.ts";
import { feishu } from "./feishu.ts";
import { slack } from "./slack.ts";
import { webhook } from "./webhook.ts";
import { wecom } from "./wecom.ts";

export const CHANNEL_KINDS = { dingtalk, feishu, wecom, slack, webhook } as const satisfies Readonly<
  Record<string, ChannelKind>
>;
export type ChannelType = keyof typeof CHANNEL_KINDS;
