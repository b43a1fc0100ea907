/** Errors according to RFC 9457. Never a stack, and no facts about the server for strangers. */

interface Kind {
  readonly status: number;
  readonly en: string;
  readonly zh: string;
}

const KINDS = {
  "invalid-request": { status: 400, en: "The request is not right", zh: "请求有误" },
  unauthenticated: { status: 401, en: "Log in first", zh: "请先登录" },
  forbidden: { status: 403, en: "You may not do this", zh: "没有权限" },
  "read-only": { status: 403, en: "This console changes nothing", zh: "这个控制台是只读的" },
  "cross-origin": { status: 403, en: "The request came from another site", zh: "请求来自别的站点" },
  "not-found": { status: 404, en: "There is no such thing", zh: "没有找到" },
  "state-conflict": {
    status: 409,
    en: "Its state forbids it",
    zh: "当前状态不允许这个操作",
  },
  "preview-expired": { status: 410, en: "There is no such preview any more", zh: "预览已经失效" },
  "precondition-failed": { status: 412, en: "The message has changed meanwhile", zh: "消息已经被改动过" },
  "body-too-large": { status: 413, en: "The request is too large", zh: "请求体太大" },
  "not-json": { status: 415, en: "The request must be JSON", zh: "请求必须是 JSON" },
  "precondition-required": { status: 428, en: "Say which version you mean", zh: "请说明针对哪个版本" },
  "rate-limited": { status: 429, en: "Too many requests", zh: "请求太频繁" },
  unexpected: { status: 500, en: "Something went wrong here", zh: "服务内部出错" },
  "database-away": { status: 503, en: "The database does not answer", zh: "数据库没有响应" },
  "database-unfit": { status: 503, en: "The tables or rights do not fit", zh: "表结构或权限不符" },
  "statement-timeout": { status: 504, en: "The database took too long", zh: "数据库查询超时" },
} as const satisfies Readonly<Record<string, Kind>>;

/** Stable; the end of `type`. */
export type ProblemCode = keyof typeof KINDS;

export const PROBLEM_CODES: readonly ProblemCode[] = Object.keys(KINDS) as ProblemCode[];

export class Problem extends Error {
  readonly code: ProblemCode;
  readonly more: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ProblemCode,
    detail: string,
    options: {
      readonly more?: Readonly<Record<string, unknown>>;
      readonly headers?: Readonly<Record<string, string>>;
    } = {},
  ) {
    super(detail);
    this.name = "Problem";
    this.code = code;
    this.more = options.more ?? {};
    this.headers = options.headers ?? {};
  }

  get status(): number {
    return KINDS[this.code].status;
  }
}

/** The answer to a failed request. `instance` finds it in the log. */
export function problemResponse(problem: Problem, language: "en" | "zh", instance: string): Response {
  const { code, headers, message: detail, more, status } = problem;
  const type = `urn:rowpost:problem:${code}`;
  return new Response(
    `${JSON.stringify({ type, title: KINDS[code][language], status, detail, instance, ...more })}\n`,
    {
      status,
      headers: { "content-type": "application/problem+json", "content-language": language, ...headers },
    },
  );
}

/** The browser's first language. */
export function languageOf(acceptLanguage: string | null): "en" | "zh" {
  return /^\s*zh\b/i.test(acceptLanguage ?? "") ? "zh" : "en";
}
