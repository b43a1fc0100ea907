import { type Broker, type Database, memory, stdout } from "rowpost";
import { InputError } from "./failure.ts";

export const BROKER_URL_VARIABLE = "ROWPOST_BROKER_URL";

interface BrokerUrl {
  readonly schemes: readonly string[];
  /** Form of the URL, for texts. One that ends with the colon takes nothing after it. */
  readonly form: string;
  /**
   * Makes the broker; connects nothing. Secrets come from the environment. The database is the
   * relay's own.
   */
  open(url: string, environment: Environment, database: Database): Broker | Promise<Broker>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** By kind, which is also the name of its entry in the library. */
const BROKERS: Readonly<Record<string, BrokerUrl>> = {
  memory: { schemes: ["memory"], form: "memory:", open: () => memory() },
  stdout: { schemes: ["stdout"], form: "stdout:", open: () => stdout() },
  http: {
    schemes: ["http", "https"],
    form: "http(s)://host/path",
    open: async (url, environment) => (await import("rowpost/http")).httpFromUrl(checkedHttpUrl(url), environment),
  },
  rocketmq: {
    schemes: ["rocketmq"],
    form: "rocketmq://host:8081[,host:8081][/namespace]",
    open: async (url, environment) => (await import("rowpost/rocketmq")).rocketmqFromUrl(url, environment),
  },
  "rocketmq-classic": {
    schemes: ["rocketmq-classic"],
    form: "rocketmq-classic://host:9876[;host:9876][/namespace]",
    open: async (url, environment) =>
      (await import("rowpost/rocketmq-classic")).rocketmqClassicFromUrl(url, environment),
  },
  kafka: {
    schemes: ["kafka"],
    form: "kafka://host:9092[,host:9092]",
    open: async (url, environment) => (await import("rowpost/kafka")).kafkaFromUrl(url, environment),
  },
  rabbitmq: {
    schemes: ["amqp", "amqps"],
    form: "amqp(s)://host[:5672][/vhost]",
    open: async (url, environment) => (await import("rowpost/rabbitmq")).rabbitmqFromUrl(url, environment),
  },
  redis: {
    schemes: ["redis", "rediss"],
    form: "redis://host:6379[/db]",
    open: async (url, environment) => (await import("rowpost/redis")).redisFromUrl(url, environment),
  },
  nats: {
    schemes: ["nats", "tls"],
    form: "nats://host:4222[,host:4222]",
    open: async (url, environment) => (await import("rowpost/nats")).natsFromUrl(url, environment),
  },
  mqtt: {
    schemes: ["mqtt", "mqtts"],
    form: "mqtt(s)://host:1883[,host:1883]",
    open: async (url, environment) => (await import("rowpost/mqtt")).mqttFromUrl(url, environment),
  },
  sqs: {
    schemes: ["sqs"],
    form: "sqs://region or sqs://host:9324",
    open: async (url) => (await import("rowpost/sqs")).sqsFromUrl(url),
  },
  queue: {
    schemes: ["queue"],
    form: "queue:[DATABASE-URL]",
    open: async (...given) => (await import("./queue-url.ts")).queueBrokerFromUrl(...given),
  },
};

/** Forms of `--broker` for help and errors; of all kinds or of these. */
export function brokerForms(kinds: readonly string[] = Object.keys(BROKERS)): string {
  const forms = kinds.map((kind) => BROKERS[kind]?.form ?? kind);
  return `${forms.slice(0, -1).join(", ")} or ${forms.at(-1)}`;
}

/** The kind of broker that a URL means, such as `rabbitmq`. Throws {@link InputError}. */
export function brokerKind(url: string): string {
  return brokerOf(url)[0];
}

/**
 * Makes the broker; nothing is connected. Secrets come from the environment. Throws {@link
 * InputError} or `ConfigurationError`.
 */
export async function openBroker(url: string, environment: Environment, database: Database): Promise<Broker> {
  return await brokerOf(url)[1].open(url, environment, database);
}

function brokerOf(url: string): readonly [kind: string, broker: BrokerUrl] {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  const found = Object.entries(BROKERS).find(([, { schemes }]) => scheme !== undefined && schemes.includes(scheme));
  if (found === undefined) {
    const what = scheme === undefined ? "has no scheme" : `begins with "${scheme}:", which is no broker known here`;
    throw new InputError(`--broker ${what}; expected ${brokerForms()}`);
  }
  const rest = url.slice(url.indexOf(":") + 1);
  if (found[1].form.endsWith(":") && rest !== "") {
    throw new InputError(`--broker ${scheme}: takes nothing behind the colon, and there is "${rest}"`);
  }
  return found;
}

function checkedHttpUrl(url: string): string {
  if (URL.canParse(url)) return url;
  throw new InputError("--broker cannot be read as a URL; expected http://host/path or https://host/path");
}

/**
 * The URL for texts, without user, password and query, which may hold secrets. The user part ends
 * at the last `@` before the path, since a password may hold an unencoded one.
 */
export function brokerLabel(url: string): string {
  return url.replace(/\/\/[^/?#]*@/, "//").replace(/[?#].*$/, "");
}

/** The password in a broker's URL, as it is written there. */
export function brokerSecret(url: string): string | undefined {
  return /\/\/[^/?#:]*:([^/?#]+)@/.exec(url)?.[1];
}
