/**
 * Message types declared once: topic, schema, keys, retry policy and confirmation rule.
 *
 * The producer makes type-checked and validated messages with them; the relay takes the retry
 * policy and the confirmation rule from the same objects.
 */
import { refuseUnknown } from "../runtime/check-options.ts";
import { ConfigurationError, describeError, InvalidMessageError } from "../runtime/errors.ts";
import type { NewMessage } from "./message.ts";
import type { StandardSchema } from "./standard-schema.ts";

/** Number and spacing of retries of a failed publish. */
export interface RetryPolicy {
  /**
   * Counted attempts until a message is `failed`. Default 16: about 34 minutes on average with the
   * other defaults.
   */
  readonly maxAttempts: number;
  /** Longest wait after the first failed attempt, in ms. Default 1,000. */
  readonly baseMs: number;
  /** Growth of the longest wait per attempt. Default 2. */
  readonly factor: number;
  /** Limit of all waits, in ms. Default 600,000 (10 minutes). */
  readonly maxMs: number;
  /**
   * Interval of slow retries of a `failed` message, in ms; 0 = never. Default 21,600,000 (6 hours).
   */
  readonly slowRetryEveryMs: number;
  /** Age of a message at which slow retries end, in ms. Default 604,800,000 (7 days). */
  readonly slowRetryForMs: number;
}

/** Retry policy of types without one. */
export const DEFAULT_RETRY_POLICY: RetryPolicy = {
  maxAttempts: 16,
  baseMs: 1_000,
  factor: 2,
  maxMs: 600_000,
  slowRetryEveryMs: 21_600_000,
  slowRetryForMs: 604_800_000,
};

/** Requires messages of a type to be confirmed by their consumer (已消费). */
export interface ConfirmRule {
  /** Time from the broker's receipt to the deadline, in ms. */
  readonly withinMs: number;
  /**
   * Action at the deadline: `resend` publishes the message again (the consumer must be idempotent;
   * counts as an attempt), `fail` makes it `failed`, `alert` only reports it and leaves it `sent`.
   */
  readonly onTimeout: "resend" | "fail" | "alert";
  /** Consumers that all have to confirm; undefined: one confirmation by anyone suffices. */
  readonly consumers?: readonly string[] | undefined;
}

/** Longest name of a consumer, in characters. */
export const CONSUMER_LENGTH = 128;

/** Options of {@link messageType}. `Body` is the program's input, before the schema. */
export interface MessageTypeOptions<Body> {
  /** Topic of messages that name none. */
  readonly topic: string;
  /**
   * Checks bodies at enqueue, synchronously or not. The schema's result is stored, with defaults
   * filled in and unknown fields dropped.
   */
  readonly schema?: StandardSchema<Body> | undefined;
  /**
   * Differences from the default: 16 attempts, 1 second to 10 minutes apart, then one every 6 hours
   * for a week. Durations in ms.
   */
  readonly retry?: Partial<RetryPolicy> | undefined;
  /** Makes consumers confirm. Default `onTimeout`: `resend`; default `consumers`: any one. */
  readonly confirm?:
    | {
        readonly withinMs: number;
        readonly onTimeout?: ConfirmRule["onTimeout"] | undefined;
        readonly consumers?: readonly string[] | undefined;
      }
    | undefined;
  /** Message key of a body, for messages that name none. */
  readonly key?: ((body: NoInfer<Body>) => string) | undefined;
  /** Ordering key of a body, for messages that name none. May return undefined for no key. */
  readonly orderingKey?: ((body: NoInfer<Body>) => string | undefined) | undefined;
  /** Media type of all bodies. Default `application/json`. */
  readonly contentType?: string | undefined;
}

/** Argument of {@link MessageType.message}. `Key` is undefined when the type derives it. */
export type MessageInput<Body, Key extends string | undefined = string> = Omit<
  NewMessage<Body>,
  "type" | "key" | "topic"
> & {
  /** Overrides the type's topic. */
  readonly topic?: string | undefined;
} & (undefined extends Key ? { readonly key?: string | undefined } : { readonly key: string });

/** A declared message type. */
export interface MessageType<Body = unknown, Key extends string | undefined = string> {
  /** Stored as `message_type`. */
  readonly name: string;
  /** Topic of messages that name none. */
  readonly topic: string;
  /** Checks bodies at enqueue; undefined: any JSON. */
  readonly schema: StandardSchema<Body> | undefined;
  /** The complete policy, with defaults. */
  readonly retry: RetryPolicy;
  /** Undefined: consumers do not confirm. */
  readonly confirm: ConfirmRule | undefined;
  /**
   * Makes a message for `outbox.enqueue`. Derives the keys from the body as given; enqueue
   * validates the body, because a schema may be asynchronous. Throws `InvalidMessageError` when a
   * key function throws.
   */
  message(input: MessageInput<Body, Key>): TypedMessage<Body>;
}

/**
 * Holds a message's declared type. An enumerable symbol survives `{ ...message }` and stays out of
 * JSON.
 */
export const DECLARED_TYPE: unique symbol = Symbol("rowpost.messageType");

/** A message with its declared type, which enqueue uses to validate it. */
export interface TypedMessage<Body = unknown> extends NewMessage<Body> {
  /** Its declared type. */
  readonly [DECLARED_TYPE]: { readonly name: string; readonly schema: StandardSchema | undefined };
}

/** Declares a message type that derives the key of each message from its body. */
export function messageType<Body>(
  name: string,
  options: MessageTypeOptions<Body> & { readonly key: (body: NoInfer<Body>) => string },
): MessageType<Body, string | undefined>;
/** Declares a message type; each message names its key. */
export function messageType<Body>(name: string, options: MessageTypeOptions<Body>): MessageType<Body>;
export function messageType<Body>(
  name: string,
  options: MessageTypeOptions<Body>,
): MessageType<Body, string | undefined> {
  const { topic, schema, contentType } = options;
  const declared = { name, schema };
  return {
    name,
    topic,
    schema,
    retry: checkedRetry(name, options.retry),
    confirm: checkedConfirm(name, options.confirm),
    message(input) {
      const { body } = input;
      const key = input.key ?? derived(name, "key", options.key, body);
      const orderingKey = input.orderingKey ?? derived(name, "orderingKey", options.orderingKey, body);
      if (key === undefined) throw new InvalidMessageError(`a message of type ${name} needs a key`);
      return {
        ...input,
        type: name,
        key,
        topic: input.topic ?? topic,
        orderingKey,
        contentType: input.contentType ?? contentType,
        [DECLARED_TYPE]: declared,
      };
    },
  };
}

function derived<Body>(
  name: string,
  what: string,
  derive: ((body: Body) => string | undefined) | undefined,
  body: Body,
): string | undefined {
  try {
    return derive?.(body);
  } catch (cause) {
    throw new InvalidMessageError(`the ${what} function of message type ${name} threw: ${describeError(cause)}`, {
      cause,
    });
  }
}

function checkedRetry(name: string, given: Partial<RetryPolicy> | undefined): RetryPolicy {
  const policy = { ...DEFAULT_RETRY_POLICY };
  for (const [field, value] of Object.entries(given ?? {})) {
    if (value === undefined) continue;
    if (!(field in policy)) throw new ConfigurationError(`message type ${name}: retry.${field} is not an option`);
    const least = field === "maxAttempts" || field === "factor" ? 1 : 0;
    if (!Number.isFinite(value) || value < least || (field !== "factor" && !Number.isInteger(value))) {
      const kind = field === "factor" ? "a number" : "a whole number";
      throw new ConfigurationError(
        `message type ${name}: retry.${field} is ${value}; it must be ${kind} of at least ${least}`,
      );
    }
    Object.assign(policy, { [field]: value });
  }
  return policy;
}

function checkedConfirm(name: string, given: MessageTypeOptions<unknown>["confirm"]): ConfirmRule | undefined {
  if (given === undefined) return undefined;
  refuseUnknown(`message type ${name}, confirm`, given, ["withinMs", "onTimeout", "consumers"]);
  const { consumers, withinMs, onTimeout = "resend" } = given;
  if (!Number.isInteger(withinMs) || withinMs < 1) {
    throw new ConfigurationError(
      `message type ${name}: confirm.withinMs is ${withinMs}; it must be a whole number of at least 1`,
    );
  }
  if (onTimeout !== "resend" && onTimeout !== "fail" && onTimeout !== "alert") {
    throw new ConfigurationError(
      `message type ${name}: confirm.onTimeout is ${String(onTimeout)}; it must be "resend", "fail" or "alert"`,
    );
  }
  return { withinMs, onTimeout, consumers: checkedConsumers(name, consumers) };
}

function checkedConsumers(name: string, consumers: readonly string[] | undefined): readonly string[] | undefined {
  if (consumers === undefined) return undefined;
  const isName = (each: unknown): boolean => typeof each === "string" && each !== "" && each.length <= CONSUMER_LENGTH;
  const isList = Array.isArray(consumers) && consumers.length > 0 && consumers.every(isName);
  if (isList && new Set(consumers).size === consumers.length) return consumers;
  throw new ConfigurationError(
    `message type ${name}: confirm.consumers must be a list of different names with 1 to ${CONSUMER_LENGTH} characters`,
  );
}
