/** The name servers: one is asked until it fails, then the next. */
import type { AbortScope } from "../publishing/abort-scope.ts";
import { failed } from "../publishing/failures.ts";
import type { RouteAnswer } from "../rocketmq/routes.ts";
import { type Address, label } from "./address.ts";
import { type Failure, failureOfAnswer, failureOfQuestion } from "./failures.ts";
import type { Frame, Request } from "./frames.ts";
import { connectTo, type Link, type Unanswered } from "./link.ts";
import type { Settings } from "./options.ts";
import { primariesFrom, type TopicRoute, topicRouteFrom } from "./topic-route.ts";

const GET_ROUTE = 105;
const GET_CLUSTER = 106;

export interface NameServers {
  /** Where the topic's messages go. Never rejects. */
  route(topic: string): Promise<RouteAnswer<TopicRoute>>;
  /** Addresses of the primary brokers, or why none are known. Never rejects. */
  primaries(): Promise<readonly string[] | Failure>;
  close(): void;
}

const SUCCESS = 0;
const TOPIC_NOT_EXIST = 17;

export function createNameServers(settings: Settings, lifetime: AbortScope): NameServers {
  const { nameServers, tls, keys, connectTimeoutMs } = settings;
  const links = new Map<Address, Link>();
  /** The one that answered last. */
  let first = 0;

  async function linkTo(address: Address): Promise<Link | Unanswered> {
    const open = links.get(address);
    if (open?.isUsable === true) return open;
    const made = await connectTo(address, { tls, keys, connectTimeoutMs, closing: lifetime });
    if (!("isUsable" in made)) return made;
    const other = links.get(address);
    // Another question may have been quicker.
    if (other?.isUsable === true) {
      made.end("CLOSED", "another connection is in use");
      return other;
    }
    links.set(address, made);
    return made;
  }

  async function askOne(address: Address, request: Request): Promise<Frame | Failure> {
    const open = links.get(address);
    const link = await linkTo(address);
    if (!("isUsable" in link)) return failureOfQuestion(link);
    const exchange = await link.exchange(request, { timeoutMs: connectTimeoutMs, scope: lifetime });
    if (exchange.answer !== undefined) return exchange.answer;
    // A connection may have broken long ago, and only now it shows.
    const isStale = link === open && exchange.code !== "TIMEOUT" && !lifetime.aborted;
    return isStale ? await askOne(address, request) : failureOfQuestion(exchange);
  }

  /** The first answer that says something; else the last failure. */
  async function ask(request: Request): Promise<Frame | Failure> {
    let last: Frame | Failure | undefined;
    const begin = first;
    for (let turn = 0; turn < nameServers.length; turn += 1) {
      const index = (begin + turn) % nameServers.length;
      const address = nameServers[index];
      if (address === undefined || lifetime.aborted) break;
      const answer = await askOne(address, request);
      if ("opaque" in answer && answer.code === SUCCESS) {
        first = index;
        return answer;
      }
      // One that was restarted may not have heard of the topic yet: the others are asked as well.
      if (last === undefined || !isMissing(last)) last = answer;
    }
    return last ?? failed("connection", "CLOSED", "the RocketMQ broker was closed");
  }

  return {
    async route(topic) {
      const answer = await ask({ code: GET_ROUTE, fields: { topic, acceptStandardJsonOnly: "true" } });
      if (!("opaque" in answer)) return { failure: answer };
      if (answer.code !== SUCCESS) return { failure: ofQuestion(failureOfAnswer(answer)) };
      return routeOf(answer.body);
    },
    async primaries() {
      const answer = await ask({ code: GET_CLUSTER, fields: {} });
      if (!("opaque" in answer)) return answer;
      if (answer.code !== SUCCESS) return ofQuestion(failureOfAnswer(answer));
      try {
        return primariesFrom(answer.body);
      } catch {
        return UNREADABLE;
      }
    },
    close() {
      for (const link of links.values()) link.end("CLOSED", "the RocketMQ broker was closed");
    },
  };

  function routeOf(body: Buffer): RouteAnswer<TopicRoute> {
    try {
      const route = topicRouteFrom(body);
      return route.queues.length === 0 ? { failure: NOWHERE } : { route };
    } catch {
      return { failure: UNREADABLE };
    }
  }
}

function isMissing(answer: Frame | Failure): boolean {
  return "opaque" in answer && answer.code === TOPIC_NOT_EXIST;
}

const UNREADABLE = failed("connection", "PROTOCOL", "the name server's answer cannot be read");
const NOWHERE = failed(
  "destination",
  "TOPIC_NOT_WRITABLE",
  "no primary broker takes messages of the topic now: its primaries are away, or it takes no writes (brokerPermission, perm of the topic: mqadmin topicRoute -t TOPIC)",
  { retryAfterMs: 1000 },
);

/** Nothing was stored by a question. */
function ofQuestion(failure: Failure): Failure {
  return failure.scope === "unknown" ? { ...failure, scope: "connection" } : failure;
}

/** For people. */
export function nameServersLabel({ nameServers }: Settings): string {
  return nameServers.map(label).join(", ");
}
