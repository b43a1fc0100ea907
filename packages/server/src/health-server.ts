/**
 * Metrics and health of a relay: `/metrics` for Prometheus, `/livez` and `/readyz` for a
 * supervisor. A broker that is away does not make it unready, since a restart would not help. Also
 * `/confirmations`, if enabled.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { MetricsRegistry, Relay } from "rowpost";
import { CONFIRM_TOKEN_VARIABLE, type ConfirmEndpoint, type EndpointAnswer } from "./confirm-endpoint.ts";
import { buildInfo } from "./http/build-info.ts";
import type { HttpAddress } from "./http-address.ts";
import { type Listening, listen } from "./http-listen.ts";

export interface HealthServerOptions {
  readonly address: HttpAddress;
  readonly metrics: Pick<MetricsRegistry, "exposition">;
  readonly relay: Pick<Relay, "report" | "health">;
  readonly confirm: ConfirmEndpoint | undefined;
}

const TEXT = "text/plain; charset=utf-8";

/** Rejects with `CommandFailure` if the address is not available. */
export async function serveHealth(options: HealthServerOptions): Promise<Listening> {
  const server = createServer((request, response) => {
    answer(options, request, response).catch(() => response.destroy());
  });
  // Limits how long a stuck scraper holds a connection.
  server.requestTimeout = 10_000;
  return await listen(server, options.address, "--http");
}

async function answer(options: HealthServerOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const isConfirmation = pathOf(request) === "/confirmations" && options.confirm !== undefined;
  const { body, headers, status, type } = isConfirmation ? await options.confirm(request) : answerOf(options, request);
  response.writeHead(status, { ...headers, "content-type": type, "cache-control": "no-store" });
  response.end(request.method === "HEAD" ? undefined : body);
}

function pathOf({ url = "/" }: IncomingMessage): string {
  return url.replace(/\?.*$/s, "");
}

function answerOf({ metrics, relay }: HealthServerOptions, request: IncomingMessage): EndpointAnswer {
  const path = pathOf(request);
  if (path === "/confirmations") {
    return { status: 404, type: TEXT, body: `no confirmations are taken here: ${CONFIRM_TOKEN_VARIABLE} is not set\n` };
  }
  if (request.method !== "GET" && request.method !== "HEAD") return { status: 405, type: TEXT, body: "GET only\n" };
  if (path === "/metrics") {
    const { version } = relay.report();
    return {
      status: 200,
      type: "text/plain; version=0.0.4; charset=utf-8",
      body: buildInfo(version) + metrics.exposition(),
    };
  }
  if (path === "/livez") return { status: 200, type: TEXT, body: "ok\n" };
  if (path === "/readyz") {
    const { ready, heartbeatAgoMs } = relay.health();
    const { brokers, lastError, restingTopics, shards } = relay.report();
    // Names and reasons are left out, because the endpoint may be public.
    const away = brokers.filter(({ awayForMs }) => awayForMs !== undefined).length;
    const body = {
      ready,
      heartbeatAgoMs,
      shards: shards.length,
      brokersAway: away,
      topicsResting: restingTopics.length,
    };
    const lastErrorAgoMs = lastError?.agoMs;
    return {
      status: ready ? 200 : 503,
      type: "application/json",
      body: `${JSON.stringify({ ...body, lastErrorAgoMs })}\n`,
    };
  }
  return { status: 404, type: TEXT, body: "only /metrics, /livez and /readyz\n" };
}
