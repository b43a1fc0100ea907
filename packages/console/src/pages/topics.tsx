/** What waits in each topic, and what holds a topic back. */
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { meta } from "../api/session.ts";
import { Command } from "../components/copy.tsx";
import { Loaded } from "../components/problem.tsx";
import { TopicTable } from "../components/topic-table.tsx";
import { words } from "../language/language.ts";
import type { PageProps } from "./page.ts";

const POLL_MS = 5_000;

export function TopicsPage({ source }: PageProps) {
  const load = async (signal: AbortSignal) => (await call("topics", { source, signal })).answer;
  const polled = usePolled(`topics ${source}`, load, { everyMs: POLL_MS, isPage: true });
  const { topics: texts } = words.value;
  const database = meta.value?.sources.find(({ name }) => name === source)?.database ?? "DATABASE";
  return (
    <>
      <h1 tabIndex={-1}>{texts.title}</h1>
      <Loaded polled={polled}>
        {({ items }) => (
          <>
            {items.length === 0 ? <p class="empty">{texts.none}</p> : <TopicTable source={source} topics={items} />}
            <div class="howto">
              <p>{texts.howto}</p>
              <Command text={`rowpost suspend --database ${database} --topic TOPIC --for 1h --reason WHY`} />
              <Command text={`rowpost resume --database ${database} --topic TOPIC --reason WHY`} />
            </div>
          </>
        )}
      </Loaded>
    </>
  );
}
