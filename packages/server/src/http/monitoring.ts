/** `/metrics`, `/livez` and `/readyz` of the console. Database reads are shared by all callers. */
import { describeError, type Logger, type MetricsRegistry } from "rowpost";
import type { AccessService } from "../access/access.ts";
import type { Source } from "../source.ts";
import { buildInfo } from "./build-info.ts";
import { isFromThisMachine } from "./peer.ts";
import { languageOf, Problem, problemResponse } from "./problem.ts";
import { unownedShards } from "./status-view.ts";

export interface MonitoringOptions {
  readonly sources: readonly Source[];
  readonly access: Pick<AccessService, "mayScrape">;
  readonly metrics: MetricsRegistry;
  readonly isReady: () => boolean;
  /** Behind a proxy, a request from this machine may be the proxy's. */
  readonly isBehindProxy: boolean;
  readonly version: string;
  readonly logger: Logger;
}

const READY_WITHIN_MS = 2_000;
const TEXT = { "content-type": "text/plain; charset=utf-8" };

/** Answers these paths; undefined for others. Never rejects. */
export function createMonitoring(
  options: MonitoringOptions,
): (request: Request, path: string) => Promise<Response> | undefined {
  const { metrics, sources, version } = options;

  async function look({ name, snapshot }: Source): Promise<void> {
    const status = await snapshot().then(
      (seen) => seen.status,
      () => undefined,
    );
    const alive = status?.instances.filter((instance) => instance.alive).length;
    metrics.gauge("rowpost_table_readable", { source: name }, status === undefined ? 0 : 1);
    metrics.gauge("rowpost_relays_alive", { source: name }, alive ?? Number.NaN);
    metrics.gauge("rowpost_shards_unowned", { source: name }, status ? unownedShards(status).length : Number.NaN);
  }

  async function refused(request: Request): Promise<Problem | undefined> {
    const isOpen = !options.isBehindProxy && isFromThisMachine(request);
    try {
      if (await options.access.mayScrape(request, { isOpen })) return undefined;
      return new Problem("unauthenticated", "another machine needs a token, of the role metrics for instance");
    } catch (error) {
      // Authentication needs the database or the program around the console.
      options.logger.warn("it could not be said who asks for the metrics", { error: describeError(error) });
      return new Problem("database-away", "it cannot be said who asks; a token needs no database");
    }
  }

  async function exposition(request: Request): Promise<Response> {
    const refusal = await refused(request);
    if (refusal !== undefined)
      return problemResponse(refusal, languageOf(request.headers.get("accept-language")), "/metrics");
    await Promise.all(sources.map(look));
    const type = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
    return new Response(buildInfo(version) + metrics.exposition(), { headers: type });
  }

  async function readiness(): Promise<Response> {
    const areRead = await Promise.all(sources.map(({ snapshot }) => answersInTime(snapshot())));
    const ready = areRead.every(Boolean) && options.isReady();
    return Response.json({ ready }, { status: ready ? 200 : 503 });
  }

  return (request, path) => {
    if (path !== "/metrics" && path !== "/livez" && path !== "/readyz") return undefined;
    if (request.method !== "GET" && request.method !== "HEAD")
      return Promise.resolve(new Response("GET only\n", { status: 405, headers: { ...TEXT, allow: "GET, HEAD" } }));
    if (path === "/livez") return Promise.resolve(new Response("ok\n", { headers: TEXT }));
    return path === "/readyz" ? readiness() : exposition(request);
  };
}

/** It rejected because the table does not match the layout. */
async function answersInTime(answer: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), READY_WITHIN_MS);
  });
  const isRead = answer.then(
    () => true,
    () => false,
  );
  return await Promise.race([isRead, late]).finally(() => clearTimeout(timer));
}
