/** `--broker URL`: the library's broker object for it. */
import { type Broker, memory, stdout } from "rowpost";
import { InputError } from "./cli/arguments.ts";

/** Variable of the environment that stands in for `--broker`. */
export const BROKER_URL_VARIABLE = "ROWPOST_BROKER_URL";

const FORMS =
  "memory:, stdout:, http(s)://host/path, rocketmq://host:8081[,host:8081][/namespace], kafka://host:9092[,host:9092], amqp(s)://host[:5672][/vhost], redis://host:6379[/db] or nats://host:4222[,host:4222]";

/** What the scheme says; for texts and decisions before anything is opened. */
export type BrokerKind = "memory" | "stdout" | "http" | "rocketmq" | "kafka" | "rabbitmq" | "redis" | "nats";

/** The kind of broker that a URL means. Throws {@link InputError}. */
export function brokerKind(url: string): BrokerKind {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  if (scheme === "memory" || scheme === "stdout") {
    const rest = url.slice(scheme.length + 1);
    if (rest !== "") throw new InputError(`--broker ${scheme}: takes nothing behind the colon, and there is "${rest}"`);
    return scheme;
  }
  if (scheme === "http" || scheme === "https") return "http";
  if (scheme === "rocketmq" || scheme === "kafka") return scheme;
  if (scheme === "amqp" || scheme === "amqps") return "rabbitmq";
  if (scheme === "redis" || scheme === "rediss") return "redis";
  if (scheme === "nats" || scheme === "tls") return "nats";
  const what = scheme === undefined ? "has no scheme" : `begins with "${scheme}:", which is no broker known here`;
  throw new InputError(`--broker ${what}; expected ${FORMS}`);
}

/** Makes the broker; nothing is connected. Secrets come from the environment. Throws {@link InputError} or `ConfigurationError`. */
export async function openBroker(
  url: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Broker> {
  switch (brokerKind(url)) {
    case "memory":
      return memory();
    case "stdout":
      return stdout();
    case "http":
      return (await import("rowpost/http")).httpFromUrl(checkedHttpUrl(url), environment);
    case "rocketmq":
      return (await import("rowpost/rocketmq")).rocketmqFromUrl(url, environment);
    case "kafka":
      return (await import("rowpost/kafka")).kafkaFromUrl(url, environment);
    case "rabbitmq":
      return (await import("rowpost/rabbitmq")).rabbitmqFromUrl(url, environment);
    case "redis":
      return (await import("rowpost/redis")).redisFromUrl(url, environment);
    case "nats":
      return (await import("rowpost/nats")).natsFromUrl(url, environment);
  }
}

function checkedHttpUrl(url: string): string {
  if (URL.canParse(url)) return url;
  throw new InputError("--broker cannot be read as a URL; expected http://host/path or https://host/path");
}

/**
 * The URL for people: without user, password and query, which may hold secrets. A user part ends at the last `@` before the path: a password may
 * hold one that nobody has percent-encoded.
 */
export function brokerLabel(url: string): string {
  return url.replace(/\/\/[^/?#]*@/, "//").replace(/[?#].*$/, "");
}

/** What of a broker's URL must not be printed: the password, as it stands there. */
export function brokerSecret(url: string): string | undefined {
  return /\/\/[^/?#:]*:([^/?#]+)@/.exec(url)?.[1];
}
