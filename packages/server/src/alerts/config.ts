/**
 * `--alerts FILE.json`: rules and channels. Secrets do not stand in it: `env:NAME` and `file:PATH`
 * say where they are.
 */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { duration as durationOf, InputError } from "../cli/arguments.ts";
import { CHANNEL_KINDS, type ChannelType } from "./channels/index.ts";
import type { Language } from "./durations.ts";
import { rankOf } from "./lifecycle.ts";
import { RULE_DEFAULTS, RULE_NAMES, type RuleName, type Rules, SEVERITIES, type Severity } from "./rules.ts";

/** A channel with its secrets read. */
export interface ChannelConfig {
  readonly name: string;
  readonly type: ChannelType;
  readonly url: string;
  readonly secret: string | undefined;
  /** A word that stands in every notice: the robot's security mode asks for it. */
  readonly keyword: string | undefined;
  readonly language: Language;
  /** Told from this severity on. */
  readonly from: Severity;
  /** Told instead, when this one has not taken a notice three times. */
  readonly fallback: string | undefined;
}

export interface AlertConfig {
  readonly rules: Rules;
  readonly channels: readonly ChannelConfig[];
  /** Asked for each minute, while alerts are evaluated. */
  readonly deadman: string | undefined;
  /** Where the console is, for the links in notices. */
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

const channel = z.strictObject({
  type: z.enum(Object.keys(CHANNEL_KINDS) as [ChannelType, ...ChannelType[]]),
  url: z.string(),
  secret: secret.optional(),
  keyword: z.string().min(1).max(50).optional(),
  language: language.optional(),
  from: z.enum(SEVERITIES).default("info"),
  fallback: name.optional(),
});

const schema = z.strictObject({
  language: language.default("en"),
  console: z.url({ protocol: /^https?$/ }).optional(),
  deadman: z.string().optional(),
  rules: z.strictObject(Object.fromEntries(RULE_NAMES.map((rule) => [rule, ruleSchema(rule).optional()]))).default({}),
  channels: z.record(name, channel).default({}),
});

/** `for`, `over`, … of what the rule has: durations are named without their unit. */
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
    if (rest.fallback !== undefined && !(rest.fallback in data.channels))
      refuse(`${at}.fallback`, `there is no channel ${rest.fallback}`);
    if (rest.fallback === channelName) refuse(`${at}.fallback`, "must be another channel");
    const instead = rest.fallback === undefined ? undefined : data.channels[rest.fallback];
    if (instead !== undefined && rankOf(instead.from) > rankOf(rest.from))
      refuse(`${at}.fallback`, `${rest.fallback} is told less than ${channelName}: its "from" must not be higher`);
    // The address of a chat robot lets anybody write who has it.
    if (rest.type !== "webhook" && !secret.safeParse(url).success)
      refuse(`${at}.url`, "must be env:NAME or file:PATH: whoever has this address can write there");
    return {
      ...{ name: channelName, type: rest.type, from: rest.from, fallback: rest.fallback, keyword: rest.keyword },
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

  const deadman = data.deadman === undefined ? undefined : addressOf(data.deadman, "deadman");
  const secrets = [...channels.flatMap((each) => [each.url, each.secret, ...credentialsOf(each.url)]), deadman];
  return {
    rules: rulesOf(data.rules),
    ...{ channels, deadman, consoleUrl: data.console },
    secrets: secrets.filter((each): each is string => each !== undefined && each !== ""),
  };
}

/** What lets people in stands in the query of some addresses, and in the path of others. */
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
