import type { AbortScope } from "../publishing/abort-scope.ts";
import { closedFailure, failed } from "../publishing/failures.ts";
import { createKeeper, type Keeper } from "../publishing/keeper.ts";
import type { RouteAnswer } from "../rocketmq/routes.ts";
import type { Failure } from "../rocketmq/rules.ts";
import { addressLabel, type ServerAddress } from "../settings/server-address.ts";
import { failureOfAnswer, failureOfQuestion } from "./failures.ts";
import type { Frame, Request } from "./frames.ts";
import { connectTo, type Link } from "./link.ts";
import type { Settings } from "./options.ts";
import { primariesFrom, type TopicRoute, topicRouteFrom } from "./topic-route.ts";

const GET_ROUTE = 105;
const GET_CLUSTER = 106;

export interface NameServers {
  route(topic: string): Promise<RouteAnswer<TopicRoute>>;
  primaries(): Promise<readonly string[] | Failure>;
  close(): void;
}

const SUCCESS = 0;
const TOPIC_NOT_EXIST = 17;

export function createNameServers(settings: Settings, lifetime: AbortScope): NameServers {
  const { nameServers, tls, keys, connectTimeoutMs } = settings;
  const servers = nameServers.map(keeperOf);
  let first = 0;

  function keeperOf(address: ServerAddress): Keeper<Link, Failure> {
    const connect = async (): Promise<Link | Failure> => {
      const made = await connectTo(address, { tls, keys, connectTimeoutMs, closing: lifetime });
      return "isUsable" in made ? made : failureOfQuestion(made);
    };
    return createKeeper<Link, Failure>({ ways: [connect], isUsable: ({ isUsable }) => isUsable, closed: CLOSED });
  }

  async function askOne(server: Keeper<Link, Failure>, request: Request): Promise<Frame | Failure> {
    const open = server.current();
    const link = await server.get();
    if (!("isUsable" in link)) return link;
    const exchange = await link.exchange(request, { timeoutMs: connectTimeoutMs, scope: lifetime });
    if (exchange.answer !== undefined) return exchange.answer;
    // The connection may have broken earlier, which only shows now.
    const isStale = link === open && exchange.code !== "TIMEOUT" && !lifetime.aborted;
    return isStale ? await askOne(server, request) : failureOfQuestion(exchange);
  }

  async function ask(request: Request): Promise<Frame | Failure> {
    let last: Frame | Failure | undefined;
    const begin = first;
    for (let turn = 0; turn < servers.length; turn += 1) {
      const index = (begin + turn) % servers.length;
      const server = servers[index];
      if (server === undefined || lifetime.aborted) break;
      const answer = await askOne(server, request);
      if ("opaque" in answer && answer.code === SUCCESS) {
        first = index;
        return answer;
      }
      // A restarted server may not know the topic yet, so the others are asked too.
      if (last === undefined || !isMissing(last)) last = answer;
    }
    return last ?? CLOSED;
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
      for (const { current } of servers) current()?.end("CLOSED", CLOSED.reason);
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

const CLOSED = closedFailure("RocketMQ");
const UNREADABLE = failed("connection", "PROTOCOL", "the name server's answer cannot be read");
const NOWHERE = failed(
  "destination",
  "TOPIC_NOT_WRITABLE",
  "no primary broker takes messages of the topic now: its primaries are away, or it takes no writes (brokerPermission, perm of the topic: mqadmin topicRoute -t TOPIC)",
  { retryAfterMs: 1000 },
);

function ofQuestion(failure: Failure): Failure {
  return failure.scope === "unknown" ? { ...failure, scope: "connection" } : failure;
}

export function nameServersLabel({ nameServers }: Settings): string {
  return nameServers.map(addressLabel).join(", ");
}
