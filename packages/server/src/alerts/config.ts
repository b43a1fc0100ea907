/**
 * `--alerts FILE.json`: rules and channels. Secrets are referenced as `env:NAME` or `file:PATH`.
 */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { duration as durationOf } from "../duration.ts";
import { InputError } from "../failure.ts";
import type { Language } from "../language.ts";
import { CHANNEL_KINDS, type ChannelType } from "./channels/index.ts";
import { RULE_DEFAULTS, RULE_NAMES, type RuleName, type Rules, SEVERITIES, type Severity } from "./rules.ts";

export interface ChannelConfig {
  readonly name: string;
  readonly type: ChannelType;
  readonly url: string;
  readonly secret: string | undefined;
  /** A word added to every notice, as the robot's security mode requires. */
  readonly keyword: string | undefined;
  readonly language: Language;
  readonly from: Severity;
}

export interface AlertConfig {
  readonly rules: Rules;
  readonly channels: readonly ChannelConfig[];
  readonly consoleUrl: string | undefined;
  /** Never to be printed. */
  readonly secrets: readonly string[];
}

const duration = z.string().transform((text, context): number => {
  try {
    return durationOf(text);
  } catch {
    context.addIssue({ code: "custom", message: "must be a duration such as 30s, 5m or 24h" });
    return z.NEVER;
  }
});

const name = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/i, "must be letters, digits, - and _, at most 32");
const language = z.enum(["en", "zh"]);
const secret = z.string().regex(/^(env:[A-Za-z_]\w*|file:.+)$/, "must be env:NAME or file:PATH: no secret stands here");

const gone = (instead: string): z.ZodOptional<z.ZodNever> => z.never({ error: `is gone; ${instead}` }).optional();

const channel = z.strictObject({
  type: z.enum(Object.keys(CHANNEL_KINDS) as [ChannelType, ...ChannelType[]]),
  url: z.string(),
  secret: secret.optional(),
  keyword: z.string().min(1).max(50).optional(),
  language: language.optional(),
  from: z.enum(SEVERITIES).default("info"),
  fallback: gone('give both channels the same "from": each of them gets every notice'),
});

const schema = z.strictObject({
  language: language.default("en"),
  console: z.url({ protocol: /^https?$/ }).optional(),
  deadman: gone("let Prometheus tell that the process is missing: RowpostAbsent of ops/prometheus-rules.yaml"),
  rules: z
    .strictObject({
      "operation-failed": gone("whoever starts a change of many messages sees how it ends, and the audit has it"),
      ...Object.fromEntries(RULE_NAMES.map((rule) => [rule, ruleSchema(rule).optional()])),
    })
    .default({}),
  channels: z.record(name, channel).default({}),
});

/** `for`, `over`, … of the rule's settings: durations are named without their unit. */
function ruleSchema(rule: RuleName) {
  const keys = Object.keys(RULE_DEFAULTS[rule]).map((key): [string, z.ZodType] => {
    if (key === "except") return [key, z.array(z.string().regex(/^D\d+$/, "must be ids such as D204")).optional()];
    return key.endsWith("Ms") ? [key.slice(0, -2), duration.optional()] : [key, z.number().int().min(1).optional()];
  });
  return z.union([z.literal("off"), z.strictObject(Object.fromEntries(keys))], {
    error: `must be "off" or an object of ${keys.map(([key]) => key).join(", ")}`,
  });
}

/** Reads the file. Throws {@link InputError}, which names the place and repeats no secret. */
export function readAlertFile(path: string, environment: Readonly<Record<string, string | undefined>>): AlertConfig {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    const why = error instanceof SyntaxError ? "is not JSON" : "cannot be read";
    throw new InputError(`--alerts ${path} ${why}; expected {"channels":{…},"rules":{…}}`);
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new InputError(`--alerts ${path}: ${issue?.path.join(".") || "the file"}: ${issue?.message ?? "is wrong"}`);
  }
  const { data } = parsed;
  const refuse = (at: string, why: string): never => {
    throw new InputError(`--alerts ${path}: ${at}: ${why}`);
  };
  const channels = Object.entries(data.channels).map(([channelName, { language: of, secret: from, url, ...rest }]) => {
    const at = `channels.${channelName}`;
    // A chat robot's address is its credential.
    if (rest.type !== "webhook" && !secret.safeParse(url).success)
      refuse(`${at}.url`, "must be env:NAME or file:PATH: whoever has this address can write there");
    return {
      name: channelName,
      type: rest.type,
      from: rest.from,
      keyword: rest.keyword,
      language: of ?? data.language,
      url: addressOf(url, `${at}.url`),
      secret: from === undefined ? undefined : secretOf(from, `${at}.secret`),
    };
  });

  function secretOf(text: string, at: string): string {
    if (!/^(env|file):/.test(text)) return text;
    const where = text.slice(text.indexOf(":") + 1);
    let found: string | undefined;
    try {
      found = text.startsWith("env:") ? environment[where] : readFileSync(where, "utf8");
    } catch {
      refuse(at, `the file ${where} cannot be read`);
    }
    const trimmed = found?.trim() ?? "";
    return trimmed === "" ? refuse(at, `${text} is empty, or not set`) : trimmed;
  }

  function addressOf(text: string, at: string): string {
    const url = secretOf(text, at);
    const isLocal = /^http:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])[:/]/.test(url);
    if (!URL.canParse(url) || !(url.startsWith("https://") || isLocal))
      refuse(at, "must be an https address (http only to this machine)");
    return url;
  }

  const secrets = channels.flatMap((each) => [each.url, each.secret, ...credentialsOf(each.url)]);
  return {
    rules: rulesOf(data.rules),
    channels,
    consoleUrl: data.console,
    secrets: secrets.filter((each): each is string => each !== undefined && each !== ""),
  };
}

/** Credentials are in the query of some addresses, and in the path of others. */
function credentialsOf(url: string): string[] {
  const { pathname, searchParams } = new URL(url);
  return [...searchParams.values(), ...pathname.split("/")].filter((part) => part.length >= 16);
}

function rulesOf(given: Readonly<Record<string, unknown>>): Rules {
  const rules = RULE_NAMES.filter((rule) => given[rule] !== "off").map((rule) => {
    const set = Object.entries(given[rule] ?? {}).map(([key, value]) => [
      key in RULE_DEFAULTS[rule] ? key : `${key}Ms`,
      value,
    ]);
    return [rule, { ...RULE_DEFAULTS[rule], ...Object.fromEntries(set) }];
  });
  return Object.fromEntries(rules);
}
