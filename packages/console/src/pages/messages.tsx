import { useEffect, useState } from "preact/hooks";
import type { AnswerOf, QueryOf } from "rowpost-server/api";
import { go, hrefOf, place } from "../address.ts";
import { tellQuietly } from "../announce.ts";
import { call } from "../api/client.ts";
import { type Polled, usePolled } from "../api/polling.ts";
import { FilterBar, withoutChip } from "../components/filter-bar.tsx";
import { type Message, MessageTable } from "../components/message-table.tsx";
import { Loaded } from "../components/problem.tsx";
import { chipsOf, type MessageQuery, queryOf } from "../filter.ts";
import { formatCount, formatNumber } from "../format.ts";
import { words } from "../language/language.ts";
import { rememberList } from "../last-list.ts";
import type { PageProps } from "./page.ts";

type List = AnswerOf<"messages">;

const POLL_MS = 10_000;

export function MessagesPage({ source }: PageProps) {
  const query = queryOf(place.value.query);
  const cursor = place.value.query.get("cursor") ?? undefined;
  const key = JSON.stringify(["messages", source, query, cursor]);
  // Only the first page updates itself.
  const everyMs = cursor === undefined ? POLL_MS : 0;
  const polled = usePolled(key, (signal) => search(source, query, cursor, signal), { everyMs, isPage: true });
  const isWord = query.word !== undefined;
  const only = isWord && polled.answer?.items.length === 1 ? polled.answer.items[0]?.id : undefined;
  useEffect(() => {
    if (only !== undefined) go(hrefOf(source, "messages", { id: only }), { replaces: true });
  }, [only]);
  return (
    <>
      <h1 tabIndex={-1}>{words.value.messages.title}</h1>
      <FilterBar source={source} query={query} />
      <Loaded polled={polled}>
        {(list) => <Found key={key} {...{ source, query, list, polled }} isFirst={cursor === undefined} />}
      </Loaded>
    </>
  );
}

/** A key is also looked up in the archive, which has an index for it. */
async function search(
  source: string,
  { word, ...query }: MessageQuery,
  cursor: string | undefined,
  signal: AbortSignal,
): Promise<List> {
  if (word !== undefined) return (await call("lookup", { source, query: { word }, signal })).answer;
  const places = query.in ?? (query.key === undefined ? undefined : "live,archive");
  const asked: QueryOf<"messages"> = { ...query, in: places, cursor };
  return (await call("messages", { source, query: asked, signal })).answer;
}

interface FoundProps {
  readonly source: string;
  readonly query: MessageQuery;
  readonly list: List;
  readonly polled: Polled<List>;
  readonly isFirst: boolean;
}

/** Rows stay in place while the user reads; new ones wait above until requested. */
function Found({ isFirst, list, query, source }: FoundProps) {
  const [shown, setShown] = useState<readonly Message[]>(list.items);
  const fresh = list.items.filter(({ id }) => !shown.some((one) => one.id === id));
  const gone = shown.length > 0 && list.items.length === 0;
  const rows = gone ? [] : shown.map((row) => list.items.find(({ id }) => id === row.id) ?? row);
  const visible = shown.length === 0 ? list.items : rows;
  const { messages: texts } = words.value;
  useEffect(() => rememberList(visible.map(({ id }) => id)));
  useEffect(() => {
    if (shown.length === 0 && list.items.length > 0) setShown(list.items);
    if (isFirst) tellQuietly(texts.shown(formatNumber(list.items.length)));
  }, [list]);
  if (visible.length === 0) return <Nothing {...{ list, query, source }} />;
  return (
    <>
      <Told list={list} isFirst={isFirst} />
      {fresh.length > 0 && isFirst && (
        <button type="button" class="fresh-rows" onClick={() => setShown(list.items)}>
          {texts.fresh(formatNumber(fresh.length))}
        </button>
      )}
      <MessageTable source={source} messages={visible} />
      <Pages {...{ isFirst, list, source }} />
    </>
  );
}

function Told({ isFirst, list: { items, searched, total } }: { readonly list: List; readonly isFirst: boolean }) {
  const { messages: texts } = words.value;
  const places = searched.places.map((name) => texts.places[name]).join(" + ");
  const how = {
    end: texts.complete,
    limit: texts.more,
    budget: texts.budget(searched.downToId ?? "?"),
  }[searched.stopped];
  return (
    <p class="told">
      <strong>
        {isFirst && total.relation === "eq" ? texts.found(formatCount(total)) : texts.shown(formatNumber(items.length))}
      </strong>
      {" · "}
      {texts.searched(places)}
      {" · "}
      {how}
    </p>
  );
}

function Pages({ isFirst, list, source }: { readonly list: List; readonly isFirst: boolean; readonly source: string }) {
  const { common, messages: texts } = words.value;
  const parameters = Object.fromEntries(place.value.query);
  const { cursor: _, ...first } = parameters;
  return (
    <p class="pages">
      {!isFirst && (
        <a class="button" data-newer href={hrefOf(source, "messages", { query: first })}>
          {common.newer}
        </a>
      )}
      {list.next !== null && (
        <a class="button" data-older href={hrefOf(source, "messages", { query: { ...first, cursor: list.next } })}>
          {list.searched.stopped === "budget" ? texts.goOn : common.older}
        </a>
      )}
    </p>
  );
}

function Nothing({
  list,
  query,
  source,
}: {
  readonly list: List;
  readonly query: MessageQuery;
  readonly source: string;
}) {
  const { messages: texts } = words.value;
  const { searched } = list;
  const chips = chipsOf(query);
  const places = searched.places.map((name) => texts.places[name]).join(" + ");
  const hasArchive = searched.places.includes("archive");
  const title = searched.complete ? (chips.length === 0 ? texts.noneAtAll : texts.none) : texts.noneYet;
  return (
    <div class="empty">
      <strong>{title}</strong>
      {chips.length > 0 && (
        <p>{searched.complete ? texts.noneText(places) : texts.noneYetText(searched.downToId ?? "?")}</p>
      )}
      <p class="empty-ways">
        {list.next !== null && (
          <a class="button main" href={hrefOf(source, "messages", { query: { ...query, cursor: list.next } })}>
            {texts.goOn}
          </a>
        )}
        {!hasArchive && searched.complete && (
          <a class="button" href={hrefOf(source, "messages", { query: { ...query, in: "live,archive" } })}>
            {texts.andArchive}
          </a>
        )}
        {chips.length > 1 &&
          chips.map(({ name, text }) => (
            <a key={name} class="button" href={withoutChip(source, query, name)}>
              {texts.without(text)}
            </a>
          ))}
      </p>
    </div>
  );
}
