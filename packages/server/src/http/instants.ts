import { Problem } from "./problem.ts";

/** How far away it is. Throws a {@link Problem} for one that has passed. */
export function msUntil(until: string | undefined): number | undefined {
  if (until === undefined) return undefined;
  const ms = Date.parse(until) - Date.now();
  if (ms > 0) return ms;
  throw new Problem("invalid-request", "until lies in the past", {
    more: { errors: [{ pointer: "/until", message: "must lie ahead" }] },
  });
}
