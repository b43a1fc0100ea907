import { useSignal } from "@preact/signals";
import type { AnswerOf } from "rowpost-server/api";
import { type ApiProblem, addressOf, call } from "../api/client.ts";
import { problemOf } from "../api/polling.ts";
import { may } from "../api/session.ts";
import { formatNumber } from "../format.ts";
import { layOut } from "../json-text.ts";
import { words } from "../language/language.ts";
import { CopyButton } from "./copy.tsx";
import { ProblemBox } from "./problem.tsx";

type Body = AnswerOf<"body">;

/** Loaded only on request, because each read is audited. */
export function useAsked<Answer>(load: () => Promise<Answer>) {
  const answer = useSignal<Answer | undefined>(undefined);
  const problem = useSignal<ApiProblem | undefined>(undefined);
  async function ask(): Promise<void> {
    try {
      problem.value = undefined;
      answer.value = await load();
    } catch (error) {
      problem.value = problemOf(error);
    }
  }
  return { answer: answer.value, problem: problem.value, ask: () => void ask() };
}

export function MessageBody({ id, source }: { readonly id: string; readonly source: string }) {
  const { answer, ask, problem } = useAsked(async () => (await call("body", { source, id })).answer);
  const { message: texts, roles } = words.value;
  return (
    <section>
      <h2>{texts.body}</h2>
      {problem !== undefined && <ProblemBox problem={problem} />}
      {answer === undefined ? (
        <p>
          <button type="button" disabled={!may("body")} onClick={ask}>
            {texts.showBody}
          </button>{" "}
          <span class="quiet">{may("body") ? texts.bodyNote : texts.needs(roles.operator)}</span>
        </p>
      ) : (
        <BodyText body={answer} raw={addressOf("rawBody", { source, id })} />
      )}
    </section>
  );
}

/** A body with its description; `raw` is the full download. */
export function BodyText({
  body: { body, contentType, headers, length, truncated },
  raw,
}: {
  readonly body: Body;
  readonly raw?: string;
}) {
  const isRaw = useSignal(false);
  const { message: texts } = words.value;
  const pieces = truncated ? undefined : layOut(body);
  return (
    <>
      <p class="body-bar">
        <span class="quiet">
          {truncated
            ? texts.truncated(formatNumber(body.length), formatNumber(length))
            : texts.characters(formatNumber(length))}
          {typeof contentType === "string" && ` · ${contentType}`}
        </span>
        {pieces !== undefined && (
          <button
            type="button"
            class="small"
            onClick={() => {
              isRaw.value = !isRaw.value;
            }}
          >
            {isRaw.value ? texts.pretty : texts.raw}
          </button>
        )}
        <CopyButton text={body} />
        {raw !== undefined && (
          <a class="button small" href={raw} download>
            {texts.download}
          </a>
        )}
      </p>

      <pre class="body">
        {pieces === undefined || isRaw.value
          ? body
          : pieces.map(({ kind, text }, at) =>
              kind === "mark" ? (
                text
              ) : (
                <span key={String(at)} class={`json-${kind}`}>
                  {text}
                </span>
              ),
            )}
      </pre>
      <Headers text={headers} />
    </>
  );
}

/** A JSON object of strings; anything else is shown unchanged. */
function Headers({ text }: { readonly text: string | null | undefined }) {
  const { common, message: texts } = words.value;
  const pairs = pairsOf(text ?? "{}");
  return (
    <>
      <h3>{texts.headers}</h3>
      {pairs === undefined ? (
        <pre class="body">{text}</pre>
      ) : pairs.length === 0 ? (
        <p class="quiet">{common.none}</p>
      ) : (
        <dl class="fields-list">
          {pairs.map(([name, value]) => (
            <div key={name}>
              <dt class="mono">{name}</dt>
              <dd class="mono">{String(value)}</dd>
            </div>
          ))}
        </dl>
      )}
    </>
  );
}

function pairsOf(text: string): [string, unknown][] | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? Object.entries(value) : undefined;
  } catch {
    return undefined;
  }
}
