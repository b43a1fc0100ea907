import type { Logger, Metrics } from "rowpost";
import type { Channel } from "./channels/send.ts";
import type { AlertsState, Notice } from "./state.ts";

/** Waits after the first and second failed attempt; after the third the notice is given up. */
const BACKOFF_MS = [15_000, 60_000] as const;

export interface DeliveryParts {
  readonly source: string;
  readonly channels: readonly Channel[];
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export async function deliver(state: AlertsState, parts: DeliveryParts): Promise<AlertsState> {
  const attempts = parts.channels.flatMap((channel) => {
    const { name } = channel.config;
    const notice = state.notices.find(({ deliveries }) => deliveries[name] !== undefined);
    const isDue = notice !== undefined && (notice.deliveries[name]?.nextMs ?? 0) <= state.clockMs;
    return isDue && channel.hasRoom() ? [{ channel, notice }] : [];
  });
  const answers = await Promise.all(
    attempts.map(async ({ channel, notice }) => ({
      channel,
      notice,
      answer: await channel.send(notice, parts.source),
    })),
  );
  let next = withoutUnknown(state, parts.channels);
  for (const { answer, channel, notice } of answers) {
    const { name } = channel.config;
    if (!answer.ok) parts.metrics.increment("rowpost_alert_send_failures_total", { channel: name });
    next = { ...next, channels: { ...next.channels, [name]: answer } };
    next = replaced(next, notice.id, (current) =>
      answer.ok ? taken(current, name) : refused(current, channel, { ...parts, clockMs: state.clockMs }, answer.answer),
    );
  }
  return { ...next, notices: next.notices.filter(({ deliveries }) => Object.keys(deliveries).length > 0) };
}

export function hasDue({ clockMs, notices }: AlertsState): boolean {
  return notices.some(({ deliveries }) => Object.values(deliveries).some(({ nextMs }) => nextMs <= clockMs));
}

function replaced(state: AlertsState, id: string, change: (notice: Notice) => Notice): AlertsState {
  return { ...state, notices: state.notices.map((notice) => (notice.id === id ? change(notice) : notice)) };
}

function taken({ deliveries, ...notice }: Notice, name: string): Notice {
  const { [name]: done, ...others } = deliveries;
  return { ...notice, deliveries: done === undefined ? deliveries : others };
}

function refused(
  notice: Notice,
  { config: { name } }: Channel,
  { clockMs, logger, source }: DeliveryParts & { readonly clockMs: number },
  answer: string,
): Notice {
  const tries = (notice.deliveries[name]?.tries ?? 0) + 1;
  const waitMs = BACKOFF_MS[tries - 1];
  if (waitMs !== undefined) {
    logger.warn("a channel has not taken a notice; tried again", { source, channel: name, tries, answer });
    return { ...notice, deliveries: { ...notice.deliveries, [name]: { tries, nextMs: clockMs + waitMs } } };
  }
  logger.error("a channel has not taken a notice three times; given up", { source, channel: name, answer });
  return taken(notice, name);
}

function withoutUnknown(state: AlertsState, channels: readonly Channel[]): AlertsState {
  const known = new Set(channels.map(({ config }) => config.name));
  const notices = state.notices.map((notice) => ({
    ...notice,
    deliveries: Object.fromEntries(Object.entries(notice.deliveries).filter(([name]) => known.has(name))),
  }));
  return { ...state, notices };
}
