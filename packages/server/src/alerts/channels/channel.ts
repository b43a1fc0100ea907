/** What a channel is: a way to tell people. */
import type { Rendered } from "../texts.ts";

/** What is sent to it. */
export interface ChannelRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What the other side answered. */
export interface ChannelResponse {
  readonly status: number;
  readonly body: string;
}

/** A notice for a channel. */
export interface Outgoing extends Rendered {
  /** The same for each attempt. */
  readonly id: string;
  readonly source: string;
  /** For programs. */
  readonly alerts: readonly Readonly<Record<string, unknown>>[];
}

/** One kind of channel. Pure: what it sends, and what the answer means. */
export interface ChannelKind {
  /** Of the text of a notice, in UTF-8. */
  readonly mostBytes: number;
  /** Notices a minute that the other side takes, less a little. */
  readonly perMinute: number;
  /** Takes the meaning from what it would read as markup or as a mention. */
  plain(text: string): string;
  request(
    notice: Outgoing,
    to: {
      readonly url: string;
      readonly secret: string | undefined;
      readonly keyword: string | undefined;
      readonly nowMs: number;
    },
  ): ChannelRequest;
  /** Undefined: taken. Else why not. */
  refusal(response: ChannelResponse): string | undefined;
}

export const JSON_HEADERS: Readonly<Record<string, string>> = { "content-type": "application/json; charset=utf-8" };

/** Of the chat robots, whose markdown is much alike: full-width signs mean nothing to them. */
export function plainMarkdown(text: string): string {
  const WIDE: Readonly<Record<string, string>> = {
    "<": "＜",
    ">": "＞",
    "[": "［",
    "]": "］",
    "(": "（",
    ")": "）",
    "*": "＊",
    "`": "｀",
    "#": "＃",
    "@": "＠",
    "\n": " ",
    "\r": " ",
  };
  return text.replace(/[<>[\]()*`#@\n\r]/g, (sign) => WIDE[sign] ?? sign);
}

/** HTTP 200, and this member of the body is 0. All else is no success. */
export function refusalByCode(
  { body, status }: ChannelResponse,
  names: { readonly code: string; readonly text: string },
): string | undefined {
  let answer: unknown;
  try {
    answer = JSON.parse(body);
  } catch {
    return `HTTP ${status}, and no JSON`;
  }
  if (typeof answer !== "object" || answer === null) return `HTTP ${status}, and no JSON object`;
  const values = new Map(Object.entries(answer));
  const code: unknown = values.get(names.code);
  if (status === 200 && code === 0) return undefined;
  return `HTTP ${status}, ${names.code} ${String(code)}: ${String(values.get(names.text) ?? "")}`;
}
