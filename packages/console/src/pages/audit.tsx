import type { AnswerOf, QueryOf } from "rowpost-server/api";
import { go, hrefOf, place } from "../address.ts";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { meta } from "../api/session.ts";
import { Instant } from "../components/instant.tsx";
import { Loaded } from "../components/problem.tsx";
import { StateMark } from "../components/state.tsx";
import { fieldOf } from "../form.ts";
import { formatNumber } from "../format.ts";
import { words } from "../language/language.ts";
import type { PageProps } from "./page.ts";

type Entry = AnswerOf<"audit">["items"][number];

const POLL_MS = 10_000;
const RESULTS = ["done", "conflict", "denied", "begun", "cancelled", "failed"] as const;
const TAGS = {
  ...({ done: "tag-good", conflict: "tag-held", denied: "tag-bad", begun: "tag" } as const),
  ...({ cancelled: "tag", failed: "tag-bad" } as const),
};

export function AuditPage({ source }: PageProps) {
  const { query: parameters } = place.value;
  const given = (name: string): string | undefined => parameters.get(name) ?? undefined;
  const filter = { author: given("author"), action: given("action"), result: given("result") };
  const cursor = given("cursor");
  const query: QueryOf<"audit"> = {
    author: filter.author,
    action: filter.action,
    cursor,
    result: RESULTS.find((result) => result === filter.result),
  };
  const load = async (signal: AbortSignal) => (await call("audit", { source, query, signal })).answer;
  const everyMs = cursor === undefined ? POLL_MS : 0;
  const polled = usePolled(JSON.stringify(["audit", source, query]), load, { everyMs, isPage: true });
  const { audit: texts, common } = words.value;
  return (
    <>
      <h1 tabIndex={-1}>{texts.title}</h1>
      {meta.value?.principal.role !== "admin" && <p class="told">{texts.mine}</p>}
      <AuditFilter key={JSON.stringify(filter)} source={source} filter={filter} />
      <Loaded polled={polled}>
        {({ items, next }) =>
          items.length === 0 ? (
            <p class="empty">{texts.none}</p>
          ) : (
            <>
              <AuditTable source={source} entries={items} />
              <p class="pages">
                {cursor !== undefined && (
                  <a class="button" data-newer href={hrefOf(source, "audit", { query: filter })}>
                    {common.newer}
                  </a>
                )}
                {next !== null && (
                  <a class="button" data-older href={hrefOf(source, "audit", { query: { ...filter, cursor: next } })}>
                    {common.older}
                  </a>
                )}
              </p>
            </>
          )
        }
      </Loaded>
    </>
  );
}

type Filter = Readonly<Record<"author" | "action" | "result", string | undefined>>;

function AuditFilter({ filter, source }: { readonly source: string; readonly filter: Filter }) {
  const { audit: texts, common } = words.value;
  function apply(event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): void {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const given = { author: fieldOf(form, "author"), action: fieldOf(form, "action"), result: fieldOf(form, "result") };
    go(hrefOf(source, "audit", { query: given }));
  }
  return (
    <form class="fields" onSubmit={apply}>
      <label>
        {texts.author}
        <input name="author" defaultValue={filter.author ?? ""} autocomplete="off" />
      </label>
      <label>
        {texts.action}
        <input name="action" defaultValue={filter.action ?? ""} autocomplete="off" />
      </label>
      <label>
        {texts.result}
        <select name="result" value={filter.result ?? ""}>
          <option value="">{common.all}</option>
          {RESULTS.map((result) => (
            <option key={result} value={result}>
              {texts.results[result]}
            </option>
          ))}
        </select>
      </label>
      <button type="submit" class="main">
        {texts.apply}
      </button>
    </form>
  );
}

function AuditTable({ entries, source }: { readonly source: string; readonly entries: readonly Entry[] }) {
  const { columns } = words.value.audit;
  return (
    <table class="rows" data-rows>
      <thead>
        <tr>
          <th scope="col">{columns.at}</th>
          <th scope="col">{columns.author}</th>
          <th scope="col">{columns.action}</th>
          <th scope="col">{columns.result}</th>
          <th scope="col">{columns.changed}</th>
          <th scope="col">{columns.reason}</th>
          <th scope="col">{columns.via}</th>
        </tr>
      </thead>
      <tbody>
        {entries.map((entry) => (
          <AuditRow key={entry.id} entry={entry} source={source} />
        ))}
      </tbody>
    </table>
  );
}

function AuditRow({ entry, source }: { readonly entry: Entry; readonly source: string }) {
  const { action, at, author, before, changed, details, ids, reason, result, via } = entry;
  const { audit: texts } = words.value;
  const { columns } = texts;
  const tag = TAGS[result];
  const hasMore = before.length > 0 || (details !== null && details !== undefined);
  return (
    <tr>
      <th scope="row">
        <Instant at={at} />
      </th>
      <td data-label={columns.author}>
        <span class="cut">{author}</span>
      </td>
      <td data-label={columns.action} class="mono">
        {action}
      </td>
      <td data-label={columns.result}>
        <span class={`tag ${tag}`}>{texts.results[result]}</span>
      </td>
      <td data-label={columns.changed}>
        {ids.slice(0, 3).map((id) => (
          <a key={id} class="num" data-row href={hrefOf(source, "messages", { id })}>
            {id}{" "}
          </a>
        ))}
        {changed > 3 && <span class="quiet">… {formatNumber(changed)}</span>}
        {ids.length === 0 && <span class="quiet">–</span>}
      </td>
      <td data-label={columns.reason} class="wide">
        {reason}
        {hasMore && <AuditMore before={before} details={details} />}
      </td>
      <td data-label={columns.via} class="quiet">
        {via ?? "–"}
      </td>
    </tr>
  );
}

function AuditMore({ before, details }: Pick<Entry, "before" | "details">) {
  const { audit: texts } = words.value;
  return (
    <details>
      <summary>{texts.details}</summary>
      {before.map(({ failReason, id, state }) => (
        <div key={id}>
          <span class="quiet">
            {texts.before} {id}:
          </span>{" "}
          <StateMark state={state} /> {failReason !== null && <q class="reason">{failReason}</q>}
        </div>
      ))}
      {details !== null && details !== undefined && <code>{JSON.stringify(details)}</code>}
    </details>
  );
}
