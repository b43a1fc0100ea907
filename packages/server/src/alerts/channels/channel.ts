import type { Rendered } from "../texts.ts";

export interface ChannelRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface ChannelResponse {
  readonly status: number;
  readonly body: string;
}

export interface Outgoing extends Rendered {
  /** The same for each attempt. */
  readonly id: string;
  readonly source: string;
  readonly alerts: readonly Readonly<Record<string, unknown>>[];
}

/** One kind of channel. Pure functions: the request to send and the meaning of the answer. */
export interface ChannelKind {
  /** Limit of a notice's text, in UTF-8. */
  readonly mostBytes: number;
  /** Notices a minute, slightly below the receiver's limit. */
  readonly perMinute: number;
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
  refusal(response: ChannelResponse): string | undefined;
}

export const JSON_HEADERS: Readonly<Record<string, string>> = { "content-type": "application/json; charset=utf-8" };

/** For chat robots, whose markdown dialects are similar: replaces markup by full-width signs. */
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

/** Success is HTTP 200 with 0 in this member of the body. */
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
