import type { AnswerOf } from "rowpost-server/api";
import { hrefOf } from "../address.ts";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { Loaded } from "../components/problem.tsx";
import { TopicTable } from "../components/topic-table.tsx";
import { words } from "../language/language.ts";
import type { PageProps } from "./page.ts";

const POLL_MS = 5_000;

export function TopicsPage({ source }: PageProps) {
  const load = async (signal: AbortSignal) => (await call("topics", { source, signal })).answer;
  const polled = usePolled(`topics ${source}`, load, { everyMs: POLL_MS, isPage: true });
  const { topics: texts } = words.value;
  return (
    <>
      <h1 tabIndex={-1}>{texts.title}</h1>
      <Loaded polled={polled}>
        {({ items }) =>
          items.length === 0 ? (
            <p class="empty">{texts.none}</p>
          ) : (
            <>
              {items.some(isSample) && (
                <p class="quiet">
                  {texts.sample} <a href={hrefOf(source, "messages")}>{texts.find}</a>
                </p>
              )}
              <TopicTable source={source} topics={items} again={polled.again} />
            </>
          )
        }
      </Loaded>
    </>
  );
}

/** For a state with too many messages, the topics are counted from a sample. */
function isSample({ states }: AnswerOf<"topics">["items"][number]): boolean {
  return states.some(({ count }) => count.relation === "gte");
}
