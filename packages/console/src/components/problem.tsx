import type { ComponentChildren } from "preact";
import type { ApiProblem } from "../api/client.ts";
import { now, type Polled } from "../api/polling.ts";
import { formatDuration } from "../format.ts";
import { words } from "../language/language.ts";

export function ProblemBox({ again, problem }: { readonly problem: ApiProblem; readonly again?: () => void }) {
  const { problem: texts } = words.value;
  const { code, more, title } = problem;
  const roles: Readonly<Record<string, string>> = words.value.roles;
  const roleOf = (value: unknown): string => roles[String(value)] ?? String(value);
  const isUnreachable = code === "unreachable";
  const detail = code === "forbidden" ? texts.forbidden(roleOf(more["needed"]), roleOf(more["role"])) : problem.message;
  return (
    <div class="problem" role="alert">
      <strong>{isUnreachable ? texts.unreachable : title}</strong>
      {texts.details[code] !== undefined && <p>{texts.details[code]}</p>}
      {isUnreachable ? <p>{texts.unreachableText}</p> : <Detail code={code}>{detail}</Detail>}
      {code === "database-unfit" && <p>{texts.unfit}</p>}
      {again !== undefined && (
        <button type="button" onClick={again}>
          {texts.again}
        </button>
      )}
    </div>
  );
}

/** The server's text is English; the app has its own for some codes. */
function Detail({ children, code }: { readonly children: string; readonly code: string }) {
  const isOurs = words.value.problem.details[code] === undefined;
  return isOurs ? (
    <p>{children}</p>
  ) : (
    <p class="quiet" lang="en">
      {children}
    </p>
  );
}

/**
 * A page while loading, failed, or loaded. If the database goes away the last data stays, greyed,
 * with its age.
 */
export function Loaded<Answer>({
  children,
  polled,
}: {
  readonly polled: Polled<Answer>;
  readonly children: (answer: Answer) => ComponentChildren;
}) {
  const { again, answer, at, problem } = polled;
  const { common, problem: texts } = words.value;
  if (answer === undefined)
    return problem === undefined ? (
      <p class="loading">{common.loading}</p>
    ) : (
      <ProblemBox problem={problem} again={again} />
    );
  const isStale = problem?.isAway === true;
  return (
    <>
      {problem !== undefined && (
        <div class="problem" role="alert">
          <strong>{problem.code === "unreachable" ? texts.unreachable : problem.title}</strong>
          <p>
            {isStale && at !== undefined
              ? texts.stale(formatDuration(now.value - at))
              : (texts.details[problem.code] ?? problem.message)}
          </p>
          <button type="button" onClick={again}>
            {texts.again}
          </button>
        </div>
      )}
      <div class={isStale ? "stale" : undefined}>{children(answer)}</div>
    </>
  );
}
