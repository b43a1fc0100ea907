import type { Logger } from "rowpost";
import type { OperationsStore } from "rowpost/admin";
import type { Principal } from "../access/principal.ts";
import type { Problem, ProblemCode } from "./problem.ts";
import { createRateLimit } from "./rate-limit.ts";
import type { Route } from "./route.ts";
import { OtherTopicProblem } from "./topic-limits.ts";

const DENIALS: readonly ProblemCode[] = ["unauthenticated", "forbidden", "read-only", "cross-origin"];
/** Limits anonymous requests, which could fill the disk: 43,000 rows a day. */
const NAMELESS_PER_SECOND = 0.5;
const NAMELESS_AT_ONCE = 50;
const PARAM_LENGTH = 64;

export type DeniedLog = (denial: {
  readonly route: Route;
  readonly name: string;
  readonly principal: Principal | undefined;
  readonly problem: Problem;
  readonly params: Readonly<Record<string, string>>;
}) => Promise<void>;

/**
 * Skips reads of users who are not logged in, since every first visit is one. If the entry cannot
 * be written, the denial stands. When anonymous entries are too many, the next one has the number
 * left out.
 */
export function createDeniedLog(store: OperationsStore, logger: Logger): DeniedLog {
  const limit = createRateLimit(NAMELESS_PER_SECOND, { burst: NAMELESS_AT_ONCE });
  let leftOut = 0;

  function isTooMuch(): boolean {
    try {
      limit("");
      return false;
    } catch {
      leftOut += 1;
      return true;
    }
  }

  return async ({ name, params, principal, problem, route }) => {
    const isDenial = DENIALS.includes(problem.code) || problem instanceof OtherTopicProblem;
    if (!isDenial || (principal === undefined && route.method === "GET")) return;
    if (principal === undefined && isTooMuch()) return;
    const short = Object.entries(params).map(([key, value]) => [key, value.slice(0, PARAM_LENGTH).toWellFormed()]);
    const before = principal === undefined && leftOut > 0 ? { leftOut } : {};
    if (principal === undefined) leftOut = 0;
    try {
      await store.record({
        author: principal?.name ?? "(nobody)",
        via: principal?.via ?? "console",
        action: route.audit ?? name,
        reason: `${problem.code}: ${problem.message}`,
        result: "denied",
        details: { method: route.method, path: route.path, params: Object.fromEntries(short), ...before },
      });
    } catch (error) {
      logger.warn("a denial could not be written to the audit", { route: name, code: problem.code, error });
    }
  };
}
