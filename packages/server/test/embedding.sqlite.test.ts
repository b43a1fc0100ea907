/**
 * The console in the frameworks that docs/embedding.md has a recipe for: each with its own parser
 * of bodies before it, under a path, and beside a route of the application.
 */
import "reflect-metadata";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { serve } from "@hono/node-server";
import { bodyParser } from "@koa/bodyparser";
import { Controller, Get, type MiddlewareConsumer, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import type { NestExpressApplication } from "@nestjs/platform-express";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { type Logger, migrate } from "rowpost";
import { sqlite } from "rowpost/sqlite";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createOneTimeLink } from "../src/access/link.ts";
import { type Console, type ConsoleOptions, createConsole } from "../src/console.ts";
import { insertMessages, temporaryFile } from "./command.ts";

/** An application that listens. */
interface App {
  readonly port: number;
  readonly close: () => Promise<unknown>;
}
type Mount = (ops: Console) => Promise<App>;

const require = createRequire(import.meta.url);
const express4 = require("express4") as typeof express;

async function listening(server: Server): Promise<App> {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: () => new Promise((resolve) => void server.close(resolve)),
  };
}

function expressApp(make: typeof express): Mount {
  return async (ops) => {
    const app = make();
    app.use(make.json());
    app.get("/hello", (_, response) => void response.send("hello"));
    app.use("/ops", (request, response) => ops.node(request, response));
    return await listening(createServer(app));
  };
}

/** Made without the syntax of decorators, which Node cannot strip. */
function nestModule(configure: (consumer: MiddlewareConsumer) => void): new () => object {
  class Hello {
    hello(): string {
      return "hello";
    }
  }
  Controller()(Hello);
  Get("hello")(Hello.prototype, "hello", Object.getOwnPropertyDescriptor(Hello.prototype, "hello") ?? {});
  class AppModule {
    configure(consumer: MiddlewareConsumer): void {
      configure(consumer);
    }
  }
  Module({ controllers: [Hello] })(AppModule);
  return AppModule;
}

async function nestApp(module: new () => object, use: (app: NestExpressApplication) => unknown): Promise<App> {
  const app = await NestFactory.create<NestExpressApplication>(module, { logger: false });
  use(app);
  await app.listen(0, "127.0.0.1");
  return { port: (app.getHttpServer().address() as AddressInfo).port, close: () => app.close() };
}

const FRAMEWORKS: Readonly<Record<string, Mount>> = {
  "Express 5": expressApp(express),
  "Express 4": expressApp(express4),

  async "Fastify 5"(ops) {
    const app = fastify();
    app.get("/hello", () => "hello");
    for (const path of ["/ops", "/ops/*"])
      app.all(path, (request, reply) => {
        reply.hijack();
        ops.node(request.raw, reply.raw, request.body);
      });
    await app.listen({ port: 0, host: "127.0.0.1" });
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close() };
  },

  "NestJS, app.use": (ops) =>
    nestApp(
      nestModule(() => undefined),
      (app) => app.use("/ops", (request: IncomingMessage, response: ServerResponse) => ops.node(request, response)),
    ),

  "NestJS, a module's middleware behind its body parser": (ops) =>
    nestApp(
      nestModule((consumer) =>
        consumer
          .apply((request: IncomingMessage, response: ServerResponse) => ops.node(request, response))
          .forRoutes("ops", "ops/{*path}"),
      ),
      () => undefined,
    ),

  async "Koa 3"(ops) {
    const app = new Koa();
    app.use(bodyParser());
    app.use(async (context, next) => {
      if (!/^\/ops(\/|$)/.test(context.path)) return await next();
      context.respond = false;
      ops.node(context.req, context.res, context.request.body);
    });
    app.use((context) => {
      if (context.path === "/hello") context.body = "hello";
    });
    return await listening(createServer((request, response) => void app.callback()(request, response)));
  },

  async "Hono 4"(ops) {
    const app = new Hono();
    app.get("/hello", (context) => context.text("hello"));
    app.all("/ops/*", (context) => ops.fetch(context.req.raw));
    return await new Promise((resolve) => {
      const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
        resolve({ port, close: () => new Promise((closed) => void server.close(closed)) }),
      );
    });
  },

  "node:http": (ops) =>
    listening(
      createServer((request, response) => {
        if (/^\/ops(\/|$)/.test(request.url ?? "")) return ops.node(request, response);
        response.statusCode = request.url === "/hello" ? 200 : 404;
        response.end("hello");
      }),
    ),
};

const closers: (() => Promise<unknown>)[] = [];
let place: Awaited<ReturnType<typeof temporaryFile>>;
let database: ReturnType<typeof sqlite>;

beforeAll(async () => {
  place = await temporaryFile();
  database = sqlite({ file: place.file });
  await migrate(database, { layout: database.defaultLayout });
  await insertMessages(database, { count: 1, topic: "orders", prefix: "a" });
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
afterAll(async () => {
  await database.close();
  await place.remove();
});

/** A console under /ops with a one-time link, in an application. */
async function embedded(
  mount: Mount,
  options: Partial<ConsoleOptions> = {},
): Promise<App & { readonly url: string; readonly origin: string; readonly token: string }> {
  const link = createOneTimeLink();
  const ops = createConsole({
    sources: [{ name: "main", database }],
    basePath: "/ops",
    access: { link },
    ...options,
  });
  closers.push(() => ops.close());
  const app = await mount(ops);
  const origin = `http://127.0.0.1:${app.port}`;
  return { ...app, origin, url: `${origin}/ops/`, token: link.token };
}

async function send(url: string, path: string, body: unknown, headers: Readonly<Record<string, string>>) {
  return await fetch(`${url}api/v1${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "sec-fetch-site": "same-origin", ...headers },
    body: JSON.stringify(body),
  });
}

test.each(Object.entries(FRAMEWORKS))("%s holds it under a path, behind its parser of bodies", async (_, mount) => {
  const { close, origin, token, url } = await embedded(mount);
  let isClosed = false;
  closers.push(async () => (isClosed ? undefined : await close()));

  const login = await send(url, "/session/exchange", { token }, {});
  const [given = ""] = login.headers.getSetCookie();
  expect([login.status, given]).toEqual([200, expect.stringMatching(/^rowpost-\d+=[\w-]{43}; Path=\/ops; HttpOnly/)]);
  const cookie = given.split(";")[0] ?? "";

  const path = "/s/main/messages/1";
  expect((await fetch(`${url}api/v1${path}`)).status).toBe(401);
  const message = await fetch(`${url}api/v1${path}?body=none`, { headers: { cookie } });
  const seen = { cookie, "if-match": message.headers.get("etag") ?? "" };
  const foreign = { ...seen, "sec-fetch-site": "cross-site" };
  expect((await send(url, `${path}/actions/suspend`, { reason: "x" }, foreign)).status).toBe(403);
  const suspended = await send(url, `${path}/actions/suspend`, { reason: "消息" }, seen);
  expect(await suspended.json()).toMatchObject({ message: { state: "suspended" } });
  const again = { cookie, "if-match": suspended.headers.get("etag") ?? "" };
  const resumed = await send(url, `${path}/actions/resume`, { reason: "消息" }, again);
  expect(await resumed.json()).toMatchObject({ message: { state: "pending" } });

  const html = { accept: "text/html" };
  for (const page of [`${origin}/ops`, url, `${url}messages?state=failed`]) {
    const answer = await fetch(page, { headers: html });
    expect([page, answer.status, await answer.text()]).toEqual([
      page,
      200,
      expect.stringContaining('base href="/ops/"'),
    ]);
  }
  const index = await (await fetch(url, { headers: html })).text();
  const files = [...index.matchAll(/(?:src|href)="([^"]*assets[^"]*)"/g)].map(([, file]) => new URL(file ?? "", url));
  expect(files.length).toBeGreaterThanOrEqual(2);
  for (const file of files) {
    const answer = await fetch(file);
    expect([file.pathname, answer.status]).toEqual([expect.stringMatching(/^\/ops\/assets\//), 200]);
    expect(answer.headers.get("content-type")).toMatch(/^text\/(javascript|css)/);
    await answer.arrayBuffer();
  }

  const theirs = await fetch(`${origin}/hello`);
  expect([theirs.status, await theirs.text()]).toEqual([200, "hello"]);
  for (const unknown of [`${origin}/nothing`, `${origin}/opsx`, `${url}assets/nothing.js`, `${url}api/v1/nothing`])
    expect([unknown, (await fetch(unknown)).status]).toEqual([unknown, 404]);
  const out = await fetch(`${url}api/v1/session`, {
    method: "DELETE",
    headers: { cookie, "sec-fetch-site": "same-origin" },
  });
  expect([out.status, out.headers.getSetCookie()[0]]).toEqual([204, expect.stringContaining("Max-Age=0")]);

  // Ends with the connections that fetch keeps open.
  await close();
  isClosed = true;
  await expect(fetch(url)).rejects.toThrow("fetch failed");
});

test("behind a proxy that speaks https, cookies go back over https alone, and the public origin is ours", async () => {
  const { close, token, url } = await embedded(expressApp(express), { publicUrl: "https://shop.example.com/ops" });
  closers.push(close);
  const from = (origin: string) =>
    fetch(`${url}api/v1/session/exchange`, {
      method: "POST",
      headers: { "content-type": "application/json", origin, "sec-fetch-site": "same-site", cookie: "rowpost=x" },
      body: JSON.stringify({ token }),
    });
  expect((await from("https://evil.example.com")).status).toBe(403);
  const { headers, status } = await send(url, "/session/exchange", { token }, { origin: "https://shop.example.com" });
  expect([status, headers.getSetCookie()[0]]).toEqual([
    200,
    expect.stringMatching(/^rowpost=[\w-]{43}; Path=\/ops; HttpOnly; SameSite=Strict; Secure$/),
  ]);
  expect(headers.get("strict-transport-security")).toContain("max-age");
});

/** A logger that keeps what it is told. */
function logged(): { readonly logger: Logger; readonly lines: string[] } {
  const lines: string[] = [];
  const keep = (line: string): void => void lines.push(line);
  return { lines, logger: { debug: keep, info: keep, warn: keep, error: keep } };
}

test("a body that nobody hands over is told, and keeps no request waiting", async () => {
  const { lines, logger } = logged();
  const lost: Mount = (ops) =>
    listening(createServer((request, response) => void text(request).then(() => ops.node(request, response))));
  const { close, token, url } = await embedded(lost, { logger });
  closers.push(close);
  const answer = await send(url, "/session/exchange", { token }, {});
  expect([answer.status, await answer.json()]).toEqual([
    500,
    expect.objectContaining({ detail: expect.stringContaining("console.node(request, response, body)") }),
  ]);
  expect(lines).toEqual([expect.stringContaining("console.node(request, response, body)")]);
});

test("a router in a router, a proxy that takes off what is before it, and a path that was not told", async () => {
  const nested: Mount = async (ops) => {
    const router = express.Router().use("/ops", (request, response) => ops.node(request, response));
    return await listening(createServer(express().use("/admin", router)));
  };
  for (const { basePath, lead } of [
    { basePath: "/admin/ops", lead: "/admin/ops" },
    // The proxy has /shop/admin/ops, and passes on /admin/ops.
    { basePath: "/shop/admin/ops", lead: "/admin/ops" },
  ]) {
    const { close, origin } = await embedded(nested, { basePath });
    closers.push(close);
    expect((await fetch(`${origin}${lead}/api/v1/session`)).status).toBe(200);
    expect(await (await fetch(`${origin}${lead}/`)).text()).toContain(`base href="${basePath}/"`);
  }
  const { lines, logger } = logged();
  const untold = await embedded(nested, { basePath: undefined, logger });
  closers.push(untold.close);
  for (let times = 0; times < 2; times += 1)
    expect((await fetch(`${untold.origin}/admin/ops/api/v1/session`)).status).toBe(200);
  expect(lines).toEqual([expect.stringContaining('createConsole({ basePath: "/admin/ops" })')]);
});
