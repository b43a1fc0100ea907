import type { ChannelConfig } from "../config.ts";
import { rankOf } from "../lifecycle.ts";
import type { ChannelAnswer, Notice } from "../state.ts";
import { cutToBytes, render } from "../texts.ts";
import type { ChannelKind, ChannelRequest, ChannelResponse } from "./channel.ts";
import { CHANNEL_KINDS } from "./index.ts";

const MINUTE_MS = 60_000;
const ANSWER_BYTES = 300;
const READ_BYTES = 4_096;
const ANSWER_MS = 5_000;

export interface Channel {
  readonly config: ChannelConfig;
  hasRoom(): boolean;
  /** Never rejects: resolves to the error. */
  send(notice: Pick<Notice, "id" | "at" | "items">, source: string): Promise<ChannelAnswer>;
}

export interface ChannelParts {
  readonly config: ChannelConfig;
  readonly consoleUrl: string | undefined;
  readonly secrets: readonly string[];
  readonly monotonicMs: () => number;
  /** Timeout of an answer in ms. Default: 5,000. */
  readonly answerMs?: number | undefined;
}

export function createChannel({
  answerMs = ANSWER_MS,
  config,
  consoleUrl,
  monotonicMs,
  secrets,
}: ChannelParts): Channel {
  const kind: ChannelKind = CHANNEL_KINDS[config.type];
  let sentMs: number[] = [];

  function request(notice: Pick<Notice, "id" | "at" | "items">, source: string) {
    const items = notice.items.filter(({ severity }) => rankOf(severity) >= rankOf(config.from));
    const link = consoleUrl && new URL(`${encodeURIComponent(source)}/alerts`, consoleUrl.replace(/\/*$/, "/")).href;
    const { mostBytes } = kind;
    const rendered = render(
      { at: notice.at, items },
      { language: config.language, source, link, mostBytes, plain: (text) => kind.plain(text) },
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

/** Rejects with an error that contains no address. */
async function post({ body, headers, url }: ChannelRequest, answerMs: number): Promise<ChannelResponse> {
  // A redirect would carry the notice and its secret to another address.
  const init = { method: "POST", headers, body, redirect: "manual", signal: AbortSignal.timeout(answerMs) } as const;
  try {
    const response = await fetch(url, init);
    return { status: response.status, body: await beginning(response) };
  } catch (error) {
    throw new Error(reasonOf(error, answerMs));
  }
}

async function beginning({ body }: Response): Promise<string> {
  if (body === null) return "";
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= READ_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, READ_BYTES).toString("utf8");
}

function reasonOf(error: unknown, answerMs: number): string {
  if (error instanceof Error && error.name === "TimeoutError") return `no answer within ${answerMs} ms`;
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  return code === "" ? "the connection failed" : `the connection failed: ${code}`;
}
