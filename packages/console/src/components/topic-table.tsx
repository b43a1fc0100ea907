import type { AnswerOf } from "rowpost-server/api";
import { hrefOf } from "../address.ts";
import { formatDuration } from "../format.ts";
import { words } from "../language/language.ts";
import { StateCount } from "./counts.tsx";
import { TopicActions } from "./topic-actions.tsx";

type Topic = AnswerOf<"topics">["items"][number];

const COLUMNS = ["pending", "sending", "failed", "suspended"] as const;

export function TopicTable({
  again,
  source,
  topics,
}: {
  readonly source: string;
  readonly topics: readonly Topic[];
  /** If given, each topic has its actions. */
  readonly again?: () => void;
}) {
  const { states, topics: texts } = words.value;
  return (
    <table class="rows" data-rows>
      <thead>
        <tr>
          <th scope="col">{texts.columns.topic}</th>
          {COLUMNS.map((state) => (
            <th key={state} scope="col" class="right">
              {states[state]}
            </th>
          ))}
          <th scope="col" class="right">
            {texts.columns.oldest}
          </th>
          <th scope="col">{texts.columns.state}</th>
          {again !== undefined && <th scope="col">{texts.columns.actions}</th>}
        </tr>
      </thead>
      <tbody>
        {topics.map((topic) => (
          <tr key={topic.topic}>
            <th scope="row">
              <a data-row href={hrefOf(source, "messages", { query: { topic: topic.topic } })}>
                {topic.topic}
              </a>
            </th>
            {COLUMNS.map((state) => (
              <td key={state} class="right" data-label={states[state]}>
                <StateCount source={source} states={topic.states} state={state} topic={topic.topic} />
              </td>
            ))}
            <td class="right num" data-label={texts.columns.oldest}>
              {topic.oldestAgeMs === 0 ? <span class="quiet">–</span> : formatDuration(topic.oldestAgeMs)}
            </td>
            <td data-label={texts.columns.state}>
              <Held topic={topic} />
            </td>
            {again !== undefined && (
              <td data-label={texts.columns.actions}>
                <TopicActions {...{ source, again }} topic={topic.topic} isSuspended={topic.suspension !== undefined} />
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Held({ topic: { resting, suspension } }: { readonly topic: Topic }) {
  const { overview, topics: texts } = words.value;
  if (suspension === undefined && resting.length === 0) return <span class="quiet">–</span>;
  return (
    <>
      {suspension !== undefined && (
        <div>
          <span class="tag tag-held">{texts.suspended}</span>{" "}
          {suspension.endsInMs === null ? overview.noEnd : overview.restsFor(formatDuration(suspension.endsInMs))}
          {" · "}
          {overview.by(suspension.author)} <q class="reason">{suspension.reason}</q>
        </div>
      )}
      {resting.slice(0, 1).map(({ reason, relay, restsForMs }) => (
        <div key={relay}>
          <span class="tag tag-held">{texts.rests}</span>{" "}
          {restsForMs === 0 ? overview.probed : overview.restsFor(formatDuration(restsForMs))}{" "}
          <q class="reason">{reason}</q>
        </div>
      ))}
    </>
  );
}
