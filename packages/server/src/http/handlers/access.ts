import type { LoggedIn } from "../../access/access.ts";
import { type Call, type ConsoleParts, firstSource, type HandlersOf } from "../call.ts";
import { mayDo, type Route } from "../route.ts";
import { ROUTES, type RouteName } from "../routes.ts";
import { limitOf } from "../topic-limits.ts";

export function accessHandlers(
  parts: ConsoleParts,
): HandlersOf<"session" | "login" | "exchangeLink" | "logout" | "meta"> {
  const { access, readOnly, sources, version } = parts;
  const { operations } = firstSource(parts);

  async function loggedIn(opened: LoggedIn, reason: string): ReturnType<HandlersOf<"login">["login"]> {
    const { cookie, principal } = opened;
    await operations.record({ author: principal.name, via: "console", action: "login", reason, result: "done" });
    return { json: { principal, ways: access.ways() }, headers: { "set-cookie": cookie } };
  }

  return {
    session: async ({ principal }) => ({ json: { principal: principal ?? null, ways: access.ways() } }),
    login: async ({ body, request }) =>
      await loggedIn(await access.login(request, body.name, body.password), "with a password"),
    exchangeLink: async ({ body, request }) =>
      await loggedIn(await access.exchange(request, body.token), "with the one-time link"),

    async logout({ principal, request }) {
      const cookie = await access.logout(request);
      if (principal !== undefined) {
        const { name: author, via } = principal;
        await operations.record({ author, via, action: "logout", reason: "asked to", result: "done" });
      }
      return new Response(null, { status: 204, headers: { "set-cookie": cookie } });
    },

    async meta({ principal }: Call<"meta">) {
      const { estimate, asOf } = await firstSource(parts).snapshot();
      const names = Object.keys(ROUTES) as RouteName[];
      const isAllowed = (route: Route): boolean =>
        mayDo(principal.role, route.role) &&
        !(readOnly && route.changes === true) &&
        (principal.topics === undefined || limitOf(route) !== undefined);
      return {
        json: {
          version,
          readOnly,
          principal,
          permissions: names.filter((name) => isAllowed(ROUTES[name])),
          sources: sources.map(({ database, layout: { columns, table }, name }) => ({
            name,
            table,
            database: database.label,
            features: {
              lockVersion: columns.lockVersion !== undefined,
              orderingKey: columns.orderingKey !== undefined,
              delay: columns.deliverAt !== undefined,
            },
          })),
          clockOffsetMs: Date.parse(estimate.clock) - Date.parse(asOf),
          now: new Date().toISOString(),
        },
      };
    },
  };
}
