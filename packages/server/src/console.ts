/**
 * The console as a function from a request to its answer: HTTP API and app over one or more message
 * tables. `rowpost console` serves it, and other programs can embed it.
 */
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { userInfo } from "node:os";
import { createMetricsRegistry, type Logger, type MetricsRegistry } from "rowpost";
import { type Authorize, createAccess } from "./access/access.ts";
import type { Access } from "./access/access-file.ts";
import type { OneTimeLink } from "./access/link.ts";
import type { AlertChannels } from "./alerts/test-notice.ts";
import { createAppFiles } from "./http/app-files.ts";
import type { ConsoleParts } from "./http/call.ts";
import { accessHandlers } from "./http/handlers/access.ts";
import { actionHandlers } from "./http/handlers/actions.ts";
import { alertHandlers } from "./http/handlers/alerts.ts";
import { bulkHandlers } from "./http/handlers/bulk.ts";
import { careHandlers } from "./http/handlers/care.ts";
import { messageHandlers } from "./http/handlers/messages.ts";
import { overviewHandlers } from "./http/handlers/overview.ts";
import { queueHandlers } from "./http/handlers/queue/queue.ts";
import { recordHandlers } from "./http/handlers/records.ts";
import { createMonitoring } from "./http/monitoring.ts";
import { nodeListener } from "./http/node-listener.ts";
import { openApiDocument } from "./http/openapi.ts";
import { samePeer } from "./http/peer.ts";
import { createRouter } from "./http/router.ts";
import { secured } from "./http/security.ts";
import { createSource, type SourceOptions } from "./source.ts";

export type { Authorize } from "./access/access.ts";
export type { AlertChannels } from "./alerts/test-notice.ts";
export type { SourceOptions } from "./source.ts";

/** Options of {@link createConsole}. */
export interface ConsoleOptions {
  /** The message tables, at least one. Sessions are stored with the first. */
  readonly sources: readonly SourceOptions[];
  /**
   * Authenticates requests for the program around the console, for example by its own session.
   * Null: not logged in. Required unless `access` is given.
   */
  readonly authorize?: Authorize | undefined;
  /** Users and tokens with hashed secrets, and the link of the first user. */
  readonly access?: (Partial<Access> & { readonly link?: OneTimeLink | undefined }) | undefined;
  /** Forbids all changes, whatever the role. Default false. */
  readonly readOnly?: boolean | undefined;
  /** Mount path, such as `/ops`. Default `/`. */
  readonly basePath?: string | undefined;
  /** Address used by browsers behind a proxy. With `https:` cookies are Secure. */
  readonly publicUrl?: string | undefined;
  /** Requests a second of one user, with a burst of five times as many. Default 20. */
  readonly requestsPerSecond?: number | undefined;
  /** Logs failed requests. Default: none. */
  readonly logger?: Logger | undefined;
  /**
   * Metrics of the console and of its `/metrics`, for example those of a relay in the same process.
   * Default: its own.
   */
  readonly metrics?: MetricsRegistry | undefined;
  /** Channels of alerts, so that admins can test them. Default: none. */
  readonly alertChannels?: AlertChannels | undefined;
  /** Further condition of `/readyz`, such as a relay in the same process. Default: none. */
  readonly isReady?: (() => boolean) | undefined;
  /** Folder of the built app. Default: this package's. */
  readonly appFolder?: string | undefined;
}

/** What {@link createConsole} makes. */
export interface Console {
  /** Answers a request; never rejects. */
  fetch(request: Request): Promise<Response>;
  /**
   * For `http.createServer` and frameworks. `body` is the body if the framework has read it
   * already; Express's `request.body` is found without it.
   */
  node(request: IncomingMessage, response: ServerResponse, body?: unknown): void;
  /**
   * Closes its connections and cancels running changes of many messages after their current batch.
   * The databases stay open.
   */
  close(): Promise<void>;
}

const SILENT: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };

function ignore(): void {}

/** Creates a console. Connects at the first request. */
export function createConsole(options: ConsoleOptions): Console {
  const {
    access,
    authorize,
    logger = SILENT,
    metrics = createMetricsRegistry(),
    publicUrl,
    readOnly = false,
  } = options;
  if (options.sources.length === 0) throw new TypeError("createConsole: sources is empty");
  if (access === undefined && authorize === undefined)
    throw new TypeError("createConsole: give `authorize` or `access`; nothing is open to everybody");
  const basePath = `/${(options.basePath ?? "").replace(/^\/+|\/+$/g, "")}`;
  const isHttps = publicUrl?.startsWith("https:") === true;
  const sources = options.sources.map((source) => createSource(source, logger));
  const [first] = sources;
  if (first === undefined) throw new TypeError("createConsole: sources is empty");
  const { link, proxy, tokens = [], users = [] } = access ?? {};
  const parts: ConsoleParts = {
    version: packageVersion(),
    sources,
    readOnly,
    metrics,
    alertChannels: options.alertChannels,
    access: createAccess({
      users,
      tokens,
      proxy,
      link,
      authorize,
      isHttps,
      basePath,
      publicUrl,
      store: first.operations,
      linkUser: osUser(),
    }),
  };
  const router = createRouter({
    ...parts,
    handlers: {
      ...accessHandlers(parts),
      ...overviewHandlers(parts),
      ...messageHandlers(parts),
      ...actionHandlers(),
      ...bulkHandlers(),
      ...recordHandlers(parts),
      ...queueHandlers(parts),
      ...careHandlers(parts),
      ...alertHandlers(parts),
    },
    publicOrigin: publicUrl === undefined ? undefined : new URL(publicUrl).origin,
    requestsPerSecond: options.requestsPerSecond ?? 20,
    logger,
  });
  const monitoring = createMonitoring({
    sources,
    access: parts.access,
    metrics,
    version: parts.version,
    logger,
    isReady: options.isReady ?? (() => true),
    isBehindProxy: publicUrl !== undefined,
  });
  const files = createAppFiles(basePath, options.appFolder);
  const document = JSON.stringify(openApiDocument(parts.version));

  async function answer(request: Request): Promise<Response> {
    const path = pathBelow(request, basePath);
    const monitored = monitoring(request, path);
    if (monitored !== undefined) return await monitored;
    if (path === "/api/v1/openapi.json" && request.method === "GET")
      return new Response(document, { headers: { "content-type": "application/json" } });
    if (path !== "/api" && !path.startsWith("/api/")) return files(request, path);
    return await router(atPath(request, path));
  }

  const fetch = async (request: Request): Promise<Response> => secured(await answer(request), isHttps);
  return {
    fetch,
    node: nodeListener({ fetch, logger, isBehindProxy: publicUrl !== undefined, basePath }),
    async close() {
      await Promise.all(sources.map((source) => source.close()));
    },
  };
}

function pathBelow(request: Request, basePath: string): string {
  const { pathname } = new URL(request.url);
  if (basePath === "/" || (pathname !== basePath && !pathname.startsWith(`${basePath}/`))) return pathname;
  return pathname.slice(basePath.length) || "/";
}

function atPath(request: Request, path: string): Request {
  const url = new URL(request.url);
  if (url.pathname === path) return request;
  url.pathname = path;
  return samePeer(new Request(url, request), request);
}

function osUser(): string {
  try {
    return userInfo().username;
  } catch {
    return "first user";
  }
}

function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const hasVersion = typeof manifest === "object" && manifest !== null && "version" in manifest;
  return hasVersion ? String(manifest.version) : "unknown";
}
