/**
 * Several brokers behind one: a topic goes to the broker of the first matching pattern. The relay
 * keeps a connection gate and a window for each, so one that is away, silent or slow does not delay
 * the others. See docs/brokers/routes.md.
 */
import { checkOptions } from "../runtime/check-options.ts";
import { BrokerError, ConfigurationError, describeError } from "../runtime/errors.ts";
import { grouped } from "../runtime/grouped.ts";
import { topicMatcher } from "../runtime/topic-patterns.ts";
import type {
  Broker,
  BrokerFeatures,
  OutgoingMessage,
  PublishFailed,
  PublishOptions,
  PublishResult,
} from "./broker.ts";
import { failed } from "./publishing/failures.ts";
import { ABORTED, failBatch } from "./publishing/results.ts";
import { inTurns } from "./publishing/turns.ts";
import { whatIsWrongWith } from "./routes/patterns.ts";

/** Topic patterns with their brokers, tried in this order. */
export type RouteTable = Readonly<Record<string, Broker>> | readonly (readonly [pattern: string, broker: Broker])[];

/** Options of {@link routes}. */
export interface RoutesOptions {
  /**
   * Takes every topic without a matching pattern. Without it the relay leaves their messages to
   * other relays of the table.
   */
  readonly otherwise?: Broker | undefined;
}

interface Route {
  readonly pattern: string;
  readonly broker: Broker;
  readonly matches: (topic: string) => boolean;
}

interface Part {
  readonly broker: Broker;
  readonly name: string;
  readonly patterns: readonly string[];
}

const OTHERWISE = "otherwise";
/** Clears the cache at this size, so that one-off topics cannot grow it without bound. */
const REMEMBERED_TOPICS = 10_000;

/**
 * Makes one broker of several. In a pattern `*` matches any characters, also dots and none; the
 * rest is compared literally and the whole topic must match. The first match wins. `close` closes
 * each broker once. Throws `ConfigurationError` for patterns that are unreachable, empty or without
 * a broker.
 */
export function routes(table: RouteTable, options: RoutesOptions = {}): Broker {
  checkOptions("routes", options, { otherwise: "any" });
  const { otherwise } = options;
  const list = checkedRoutes(table, otherwise);
  const parts = partsOf(list, otherwise);
  const partByBroker = new Map(parts.map((part) => [part.broker, part]));
  const remembered = new Map<string, Part | undefined>();

  function partOf(topic: string): Part | undefined {
    if (remembered.has(topic)) return remembered.get(topic);
    const broker = list.find(({ matches }) => matches(topic))?.broker ?? otherwise;
    const part = broker === undefined ? undefined : partByBroker.get(broker);
    if (remembered.size >= REMEMBERED_TOPICS) remembered.clear();
    remembered.set(topic, part);
    return part;
  }

  /** One broker's share of a call. Violations of the contract are reported as the relay would. */
  async function publishAt(
    part: Part | undefined,
    messages: readonly OutgoingMessage[],
    options: PublishOptions,
  ): Promise<readonly PublishResult[]> {
    if (part === undefined) return failBatch(messages, ({ topic }) => noRoute(topic, list));
    try {
      const results: unknown = await part.broker.publish(messages, options);
      if (Array.isArray(results) && results.length === messages.length) return results as PublishResult[];
      return messages.map(() => adapterBug(`${part.name} gave no result for each of ${messages.length} messages`));
    } catch (error) {
      return messages.map(() => adapterBug(`${part.name} rejected: ${describeError(error)}`));
    }
  }

  async function publishTurn(messages: readonly OutgoingMessage[], options: PublishOptions): Promise<PublishResult[]> {
    const results: PublishResult[] = messages.map(() => ABORTED);
    const shares = grouped(messages.entries(), ([, { topic }]) => partOf(topic));
    await Promise.all(
      [...shares].map(async ([part, entries]) => {
        const answers = await publishAt(
          part,
          entries.map(([, message]) => message),
          options,
        );
        for (const [place, [index]] of entries.entries()) results[index] = answers[place] ?? ABORTED;
      }),
    );
    return results;
  }

  return {
    name: "routes",
    target: targetOf(list, otherwise),
    features: commonFeatures(parts),
    routes: {
      brokers: parts.map(({ name }) => name),
      brokerOf: (topic) => partOf(topic)?.name,
      topics: takesAll(list, otherwise) ? undefined : list.map(({ pattern }) => pattern),
    },
    publish: (batch, options) =>
      inTurns(
        batch,
        options.signal,
        ({ topic }) => partOf(topic),
        (messages) => publishTurn(messages, options),
      ),
    check: () => checkAll(parts),
    async close() {
      const closed = await Promise.allSettled(parts.map(({ broker }) => broker.close()));
      for (const one of closed) if (one.status === "rejected") throw one.reason;
    },
  };
}

function takesAll(list: readonly Route[], otherwise: Broker | undefined): boolean {
  return otherwise !== undefined || list.some(({ pattern }) => pattern === "*");
}

function targetOf(list: readonly Route[], otherwise: Broker | undefined): string {
  const placed = [...list, ...(otherwise === undefined ? [] : [{ pattern: OTHERWISE, broker: otherwise }])];
  return placed
    .toSorted((left, right) => (left.pattern < right.pattern ? -1 : 1))
    .map(({ pattern, broker: { name, target } }) => `${pattern} to ${target ?? name}`)
    .join("; ");
}

/** Only for a topic that no relay hands over, since a relay leaves it to others. */
function noRoute(topic: string, list: readonly Route[]): PublishFailed {
  const known = list.map(({ pattern }) => pattern).join(", ");
  const reason = `no route for topic ${topic}; routes: ${known}. Add one for it, or a broker for every other topic (otherwise; --broker)`;
  return failed("message", "NO_ROUTE", reason);
}

function adapterBug(reason: string): PublishResult {
  return failed("unknown", "ADAPTER_BUG", reason);
}

const TAKES =
  'routes: takes patterns with their brokers, such as { "orders.*": broker }, or a list of pairs, [["orders.*", broker], …]';

function checkedRoutes(table: RouteTable, otherwise: Broker | undefined): readonly Route[] {
  if (typeof table !== "object" || table === null) {
    throw new ConfigurationError(TAKES);
  }
  const pairs = Array.isArray(table) ? (table as readonly (readonly [string, Broker])[]) : Object.entries(table);
  if (!pairs.every((pair: unknown) => Array.isArray(pair) && typeof pair[0] === "string")) {
    throw new ConfigurationError(TAKES);
  }
  if (pairs.length === 0) {
    throw new ConfigurationError(
      'routes: there is none; give at least one, such as { "orders.*": broker }, or use the broker itself',
    );
  }
  const list: Route[] = [];
  for (const [pattern, broker] of pairs) {
    // An object lists such keys first, and the order matters.
    if (!Array.isArray(table) && /^\d+$/.test(pattern) && pairs.length > 1) {
      throw new ConfigurationError(
        `routes: the order of "${pattern}" is lost in an object; give a list: [["${pattern}", broker], …]`,
      );
    }
    const wrong = whatIsWrongWith(
      pattern,
      list.map((route) => route.pattern),
    );
    if (wrong !== undefined) throw new ConfigurationError(`routes: ${wrong}`);
    checkBroker(broker, `"${pattern}"`);
    list.push({ pattern, broker, matches: topicMatcher(pattern) });
  }
  if (otherwise !== undefined) {
    checkBroker(otherwise, OTHERWISE);
    if (takesAll(list, undefined)) {
      throw new ConfigurationError(
        'routes: the pattern "*" takes every topic, so nothing is left for otherwise; drop one of them',
      );
    }
  }
  return list;
}

/** JavaScript callers and configuration files have no types. */
function checkBroker(broker: unknown, where: string): void {
  const isBroker =
    typeof broker === "object" && broker !== null && "publish" in broker && typeof broker.publish === "function";
  if (!isBroker) {
    throw new ConfigurationError(
      `routes: ${where} has no broker; give the object that an adapter makes, such as http({ url })`,
    );
  }
  if ("routes" in broker && broker.routes !== undefined) {
    throw new ConfigurationError(`routes: ${where} leads to routes again; write their patterns here instead`);
  }
}

function partsOf(list: readonly Route[], otherwise: Broker | undefined): readonly Part[] {
  const patterns = new Map<Broker, string[]>();
  for (const { pattern, broker } of list) patterns.set(broker, [...(patterns.get(broker) ?? []), pattern]);
  if (otherwise !== undefined) patterns.set(otherwise, [...(patterns.get(otherwise) ?? []), OTHERWISE]);
  const brokers = [...patterns.keys()];
  return [...patterns].map(([broker, own]) => {
    const isAlone = brokers.filter(({ name }) => name === broker.name).length === 1;
    return { broker, patterns: own, name: isAlone ? broker.name : `${broker.name} (${own.join(", ")})` };
  });
}

function commonFeatures(parts: readonly Part[]): BrokerFeatures {
  const features = parts.map(({ broker }) => broker.features);
  const limits = features.flatMap(({ maxBodyBytes }) => maxBodyBytes ?? []);
  return {
    ordering: features.every(({ ordering }) => ordering === "key") ? "key" : "none",
    reportsUnknownTopic: features.every(({ reportsUnknownTopic }) => reportsUnknownTopic),
    maxBodyBytes: limits.length === 0 ? undefined : Math.min(...limits),
  };
}

/**
 * Checks all brokers in parallel. The error names each that cannot be used. Its code is
 * `MISSING_PEER` or `CONFIGURATION` if one of them can never work, `ROUTES_PARTLY_AWAY` if some can
 * be used, else `ROUTES_AWAY`.
 */
async function checkAll(parts: readonly Part[]): Promise<void> {
  const checks = await Promise.allSettled(parts.map(({ broker }) => broker.check()));
  const bad = checks.flatMap((check, index) => {
    const part = parts[index];
    return check.status === "rejected" && part !== undefined ? [{ part, error: check.reason as unknown }] : [];
  });
  if (bad.length === 0) return;
  const told = bad.map(({ part, error }) => `${part.name} for ${part.patterns.join(", ")}: ${describeError(error)}`);
  const lasting = bad
    .map(({ error }) => codeOf(error))
    .find((code) => code === "MISSING_PEER" || code === "CONFIGURATION");
  throw new BrokerError(
    lasting ?? (bad.length < parts.length ? "ROUTES_PARTLY_AWAY" : "ROUTES_AWAY"),
    `${bad.length} of ${parts.length} brokers cannot be used: ${told.join("; ")}`,
    {
      cause: new AggregateError(bad.map(({ error }) => error)),
      // A refused broker stops its own topics, not the relay, which the others need.
      retriable: lasting === undefined && (bad.length < parts.length || bad.some(({ error }) => isRetriable(error))),
    },
  );
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

function isRetriable(error: unknown): boolean {
  return error instanceof Error && "retriable" in error && error.retriable === true;
}
