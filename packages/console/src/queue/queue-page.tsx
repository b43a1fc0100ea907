/** The message queue stored in SQL: topics, a topic, a group, or a message. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { place } from "../address.ts";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { Command } from "../components/copy.tsx";
import { Loaded } from "../components/problem.tsx";
import { formatNumber } from "../format.ts";
import { queueWords } from "../language/queue.ts";
import type { PageProps } from "../pages/page.ts";
import { GroupView } from "./group.tsx";
import { MessageView } from "./message.tsx";
import { queueHref } from "./places.ts";
import { TopicView } from "./topic.tsx";

const POLL_MS = 15_000;

export function QueuePage({ source }: PageProps) {
  const { query } = place.value;
  const [topic, group, message] = ["topic", "group", "message"].map((name) => query.get(name) ?? undefined);
  const view = [topic, group, message].join(" ");
  const isFirst = useRef(true);
  // Focuses the heading as after a page load; the page itself stays.
  useEffect(() => {
    if (!isFirst.current) document.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [view]);
  if (topic === undefined) return <Topics source={source} />;
  const shared = { source, topic };
  if (message !== undefined) return <MessageView key={view} {...shared} id={message} />;
  if (group !== undefined) return <GroupView key={view} {...shared} group={group} />;
  return <TopicView key={view} {...shared} />;
}

function Topics({ source }: PageProps) {
  const load = async (signal: AbortSignal) => (await call("queueTopics", { source, signal })).answer;
  const polled = usePolled(`queue ${source}`, load, { everyMs: POLL_MS, isPage: true });
  const { columns, ...texts } = { ...queueWords.value, columns: queueWords.value.topics };
  return (
    <>
      <h1 tabIndex={-1}>{texts.title}</h1>
      <Loaded polled={polled}>
        {({ items, tables }) =>
          items.length === 0 ? (
            <Nothing title={tables ? undefined : texts.noTables}>
              {tables ? texts.noTopics : texts.noTablesText}
            </Nothing>
          ) : (
            <table class="rows" data-rows>
              <thead>
                <tr>
                  <th scope="col">{columns.topic}</th>
                  <th scope="col" class="right">
                    {columns.partitions}
                  </th>
                  <th scope="col" class="right">
                    {columns.keyed}
                  </th>
                  <th scope="col">{columns.kept}</th>
                </tr>
              </thead>
              <tbody>
                {items.map(({ keyedPartitions, partitions, retentionMonths, topic }) => (
                  <tr key={topic}>
                    <th scope="row">
                      <a data-row href={queueHref(source, { topic })}>
                        {topic}
                      </a>
                    </th>
                    <td class="right num" data-label={columns.partitions}>
                      {formatNumber(partitions)}
                    </td>
                    <td class="right num" data-label={columns.keyed}>
                      {formatNumber(keyedPartitions)}
                    </td>
                    <td data-label={columns.kept}>
                      {retentionMonths === null ? columns.ever : columns.months(formatNumber(retentionMonths))}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Loaded>
    </>
  );
}

function Nothing({ children, title }: { readonly title: string | undefined; readonly children: ComponentChildren }) {
  return (
    <div class="empty empty-queue">
      {title !== undefined && <strong>{title}</strong>}
      <p>{children}</p>
      <Command text="rowpost queue create orders --database URL" />
    </div>
  );
}
