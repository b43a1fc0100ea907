/** The OpenAPI 3.1 document, generated from the route table. */
import { z } from "zod";
import { PROBLEM_CODES } from "./problem.ts";
import type { Route } from "./route.ts";
import { ROUTES, type RouteName } from "./routes.ts";

type Json = Readonly<Record<string, unknown>>;

export function openApiDocument(version: string): Json {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const name of Object.keys(ROUTES) as RouteName[]) {
    const route: Route = ROUTES[name];
    const path = `/api/v1${route.path.replace(/:(\w+)/g, "{$1}")}`;
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(name, route) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "rowpost console",
      version,
      description: "Look at messages of the local message table, and change them by hand.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    paths,
    components: {
      securitySchemes: {
        session: { type: "apiKey", in: "cookie", name: "rowpost-7070", description: SESSION_COOKIE },
        token: { type: "http", scheme: "bearer" },
      },
      schemas: { Problem: PROBLEM },
    },
  };
}

const SESSION_COOKIE = "`rowpost-` and the port; `rowpost` without one; with `__Host-` in front under https";

const PROBLEM: Json = {
  type: "object",
  required: ["type", "title", "status", "detail", "instance"],
  properties: {
    type: { type: "string", enum: PROBLEM_CODES.map((code) => `urn:rowpost:problem:${code}`) },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string" },
    instance: { type: "string" },
  },
};

const PROBLEM_ANSWER: Json = {
  description: "What went wrong",
  content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
};

function operationOf(name: RouteName, route: Route): Json {
  const { about, answer, body, ifMatch, role, status = 200 } = route;
  const content = answer && { "application/json": { schema: schemaOf(answer, "output") } };
  const requestBody = body && {
    required: true,
    content: { "application/json": { schema: schemaOf(body, "input") } },
  };
  return {
    operationId: name,
    summary: about,
    description: role === "anyone" ? "For anyone." : `Needs the role ${role}.`,
    security: role === "anyone" ? [] : [{ session: [] }, { token: [] }],
    parameters: [
      ...[...route.path.matchAll(/:(\w+)/g)].map(([, parameter]) => ({
        name: parameter,
        in: "path",
        required: true,
        schema: { type: "string" },
      })),
      ...queryParameters(route),
      ...(ifMatch === true ? [{ name: "If-Match", in: "header", required: true, schema: { type: "string" } }] : []),
    ],
    ...(requestBody && { requestBody }),
    responses: { [status]: { description: "Done", ...(content && { content }) }, default: PROBLEM_ANSWER },
  };
}

function queryParameters({ query }: Route): Json[] {
  if (query === undefined) return [];
  const { properties = {}, required = [] } = schemaOf(query, "input") as {
    readonly properties?: Json;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
  }));
}

function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { target: "draft-2020-12", io });
  return rest;
}
