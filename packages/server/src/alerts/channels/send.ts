/** A channel that is set up: what it takes a minute, and sending. */
import type { ChannelConfig } from "../config.ts";
import { rankOf } from "../lifecycle.ts";
import { post } from "../post.ts";
import type { ChannelAnswer, Notice } from "../state.ts";
import { cutToBytes, render } from "../texts.ts";
import type { ChannelKind } from "./channel.ts";
import { CHANNEL_KINDS } from "./index.ts";

const MINUTE_MS = 60_000;
const ANSWER_BYTES = 300;

export interface Channel {
  readonly config: ChannelConfig;
  /** Has the other side room for another notice now? */
  hasRoom(): boolean;
  /** Never rejects: what went wrong is the answer. */
  send(notice: Pick<Notice, "id" | "at" | "items">, source: string): Promise<ChannelAnswer>;
}

export interface ChannelParts {
  readonly config: ChannelConfig;
  readonly consoleUrl: string | undefined;
  /** Taken out of what the other side answers. */
  readonly secrets: readonly string[];
  readonly monotonicMs: () => number;
  /** For an answer. Default: 5,000. */
  readonly answerMs?: number | undefined;
}

/** Makes it. Nothing is sent before the first notice. */
export function createChannel({ answerMs, config, consoleUrl, monotonicMs, secrets }: ChannelParts): Channel {
  const kind: ChannelKind = CHANNEL_KINDS[config.type];
  let sentMs: number[] = [];

  function request(notice: Pick<Notice, "id" | "at" | "items">, source: string) {
    const items = notice.items.filter(({ severity }) => rankOf(severity) >= rankOf(config.from));
    const link = consoleUrl && new URL(`${encodeURIComponent(source)}/alerts`, consoleUrl.replace(/\/*$/, "/")).href;
    const { mostBytes } = kind;
    const rendered = render(
      { at: notice.at, items },
      { ...{ language: config.language, source, link, mostBytes }, plain: (text) => kind.plain(text) },
    );
    const alerts = items.map((item) => ({ ...item }));
    const { keyword, secret, url } = config;
    return kind.request({ ...rendered, id: notice.id, source, alerts }, { url, secret, keyword, nowMs: Date.now() });
  }

  function clean(text: string): string {
    let shown = text;
    for (const each of secrets) shown = shown.replaceAll(each, "***");
    return cutToBytes(shown.replace(/\s+/g, " ").trim(), ANSWER_BYTES);
  }

  return {
    config,
    hasRoom() {
      sentMs = sentMs.filter((each) => monotonicMs() - each < MINUTE_MS);
      return sentMs.length < kind.perMinute;
    },
    async send(notice, source) {
      sentMs.push(monotonicMs());
      let refusal: string | undefined;
      try {
        refusal = kind.refusal(await post(request(notice, source), answerMs));
      } catch (error) {
        refusal = error instanceof Error ? error.message : String(error);
      }
      return { at: new Date().toISOString(), ok: refusal === undefined, answer: clean(refusal ?? "ok") };
    },
  };
}
