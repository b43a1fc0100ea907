import type { Metrics } from "rowpost";
import type { z } from "zod";
import type { AccessService } from "../access/access.ts";
import type { Principal } from "../access/principal.ts";
import type { AlertChannels } from "../alerts/test-notice.ts";
import type { Source } from "../source.ts";
import type { AnswerOf, ROUTES, RouteName } from "./routes.ts";

type Table = typeof ROUTES;

/** Already checked: rights, query, body, source and id. */
export interface Call<Name extends RouteName> {
  readonly request: Request;
  readonly principal: Table[Name]["role"] extends "anyone" ? Principal | undefined : Principal;
  readonly source: Table[Name]["path"] extends `/s/${string}` ? Source : undefined;
  readonly id: Table[Name]["path"] extends `${string}/:id${string}` ? string : undefined;
  readonly topic: Table[Name]["path"] extends `${string}/:topic${string}` ? string : undefined;
  readonly group: Table[Name]["path"] extends `${string}/:group${string}` ? string : undefined;
  readonly operation: Table[Name]["path"] extends `${string}/:operation${string}` ? string : undefined;
  readonly silence: Table[Name]["path"] extends `${string}/:silence${string}` ? string : undefined;
  readonly channel: Table[Name]["path"] extends `${string}/:channel${string}` ? string : undefined;
  readonly query: Table[Name] extends { readonly query: infer Query extends z.ZodType } ? z.output<Query> : undefined;
  readonly body: Table[Name] extends { readonly body: infer Body extends z.ZodType } ? z.output<Body> : undefined;
}

export type Reply<Name extends RouteName> =
  | { readonly json: AnswerOf<Name>; readonly headers?: Readonly<Record<string, string>> }
  | Response;

export type Handler<Name extends RouteName> = (call: Call<Name>) => Promise<Reply<Name>>;

export type HandlersOf<Name extends RouteName> = { readonly [Each in Name]: Handler<Each> };

export interface ConsoleParts {
  readonly version: string;
  readonly sources: readonly Source[];
  readonly access: AccessService;
  readonly readOnly: boolean;
  readonly metrics: Metrics;
  readonly alertChannels: AlertChannels | undefined;
}

/** The source for data of no source: logins and their audit. */
export function firstSource({ sources }: Pick<ConsoleParts, "sources">): Source {
  const [first] = sources;
  if (first === undefined) throw new Error("a console without sources");
  return first;
}
