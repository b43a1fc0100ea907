import type { AnswerOf } from "rowpost-server/api";
import { hrefOf, type Page } from "../address.ts";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { meta } from "../api/session.ts";
import { Command } from "../components/copy.tsx";
import { CountOf, StateLine } from "../components/counts.tsx";
import { Loaded } from "../components/problem.tsx";
import { TopicTable } from "../components/topic-table.tsx";
import { formatDuration } from "../format.ts";
import { words } from "../language/language.ts";
import type { PageProps } from "./page.ts";

type Overview = AnswerOf<"overview">;
type Problem = Overview["problems"][number];

const POLL_MS = 5_000;
const SHOWN_TOPICS = 10;

export function OverviewPage({ source }: PageProps) {
  const load = async (signal: AbortSignal) => (await call("overview", { source, signal })).answer;
  const polled = usePolled(`overview ${source}`, load, { everyMs: POLL_MS, isPage: true });
  const { menu, overview: texts } = words.value;
  return (
    <>
      <h1 tabIndex={-1}>{menu.overview}</h1>
      <Loaded polled={polled}>
        {(overview) => (
          <>
            {overview.relays.known === 0 && <FirstSteps source={source} />}
            <Problems source={source} overview={overview} />
            <section>
              <h2>
                {texts.states}
                {overview.messages !== undefined && (
                  <span class="aside">
                    {texts.whole} <CountOf count={overview.messages} />
                  </span>
                )}
              </h2>
              <StateLine source={source} states={overview.states} />
            </section>
            <section>
              <h2>
                {texts.topics}
                <a class="aside" href={hrefOf(source, "topics")}>
                  {texts.allTopics}
                </a>
              </h2>
              {overview.topics.length === 0 ? (
                <p class="quiet">{texts.noTopics}</p>
              ) : (
                <TopicTable source={source} topics={overview.topics.slice(0, SHOWN_TOPICS)} />
              )}
            </section>
            <section>
              <h2>
                {texts.relays}
                <a class="aside" href={hrefOf(source, "relays")}>
                  {texts.allRelays}
                </a>
              </h2>
              <p>{texts.relaysAlive(overview.relays.alive, overview.relays.known)}</p>
            </section>
          </>
        )}
      </Loaded>
    </>
  );
}

function Problems({ overview, source }: { readonly overview: Overview; readonly source: string }) {
  const { overview: texts } = words.value;
  const { oldestDue, problems, relays } = overview;
  // The first steps already say that no relay was started.
  const told = relays.known === 0 ? problems.filter(({ kind }) => kind !== "no relay") : problems;
  if (told.length === 0)
    return relays.known === 0 ? null : (
      <p class="all-well">
        {texts.allWell(relays.alive)} ·{" "}
        {oldestDue === undefined ? texts.nothingWaits : texts.oldest(formatDuration(oldestDue.waitingMs))}
      </p>
    );
  return (
    <section>
      <h2>
        {texts.problems} <span class="badge num">{told.length}</span>
      </h2>
      <ul class="problems">
        {told.map((problem) => (
          <ProblemLine key={`${problem.kind} ${problem.subject} ${problem.reason ?? ""}`} {...{ problem, source }} />
        ))}
      </ul>
    </section>
  );
}

function ProblemLine({ problem, source }: { readonly problem: Problem; readonly source: string }) {
  const { overview: texts } = words.value;
  const { author, count, kind, reason, subject } = problem;
  const { page, query } = whereToLook(problem);
  const isGrave = kind === "no relay" || kind === "shards unowned" || kind === "broker away" || kind === "failed";
  return (
    <li class={isGrave ? "grave" : "mild"}>
      <span class="problem-what">
        {texts.kinds[kind](kind === "suspended" ? suspendedWhat(subject) : subject)}
        {kind === "failed" && <CountOf count={count} />}
      </span>
      <span class="problem-more">
        {[spanOf(problem), author === undefined ? "" : texts.by(author)].filter((part) => part !== "").join(" · ")}
        {reason !== undefined && reason !== "" && <q class="reason">{reason}</q>}
      </span>
      <a href={hrefOf(source, page, { query })}>{words.value.menu[page]}</a>
    </li>
  );
}

/** Translates `topic orders`. */
function suspendedWhat(subject: string): string {
  const [scope = "", ...value] = subject.split(" ");
  const scopes: Readonly<Record<string, string>> = words.value.overview.scopes;
  return [scopes[scope] ?? scope, ...value].join(" ").trim();
}

function spanOf({ forMs, kind }: Problem): string {
  const { overview: texts } = words.value;
  if (kind === "suspended") return forMs === undefined ? texts.noEnd : texts.restsFor(formatDuration(forMs));
  if (forMs === undefined) return kind === "topic rests" ? texts.probed : "";
  const span = formatDuration(forMs);
  if (kind === "no relay") return texts.lastSign(span);
  return kind === "topic rests" ? texts.restsFor(span) : texts.since(span);
}

function whereToLook({ kind, subject }: Problem): {
  readonly page: Page;
  readonly query: Readonly<Record<string, string>>;
} {
  switch (kind) {
    case "failed":
      return { page: "messages", query: { ...(subject === "" ? {} : { topic: subject }), state: "failed" } };
    case "suspended":
      return { page: "messages", query: { state: "suspended" } };
    case "topic rests":
      return { page: "topics", query: {} };
    default:
      return { page: "relays", query: {} };
  }
}

/** No relay was ever seen: instructions for a new user. */
function FirstSteps({ source }: { readonly source: string }) {
  const { first } = words.value.overview;
  const database = meta.value?.sources.find(({ name }) => name === source)?.database ?? "DATABASE";
  return (
    <section class="first">
      <h2>{first.title}</h2>
      <p>{first.text}</p>
      <ol>
        <li>
          {first.migrate} <Command text={`rowpost migrate --database ${database}`} />
        </li>
        <li>
          {first.insert}{" "}
          <Command text={'await outbox.enqueue(tx, { type: "order.paid", key, topic: "orders", body })'} />
        </li>
        <li>
          {first.relay} <Command text={`rowpost relay --database ${database} --broker BROKER`} />
        </li>
      </ol>
    </section>
  );
}
