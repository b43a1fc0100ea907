/** Search of a topic's messages by key, id and time; shows the months searched. */
import type { AnswerOf } from "rowpost-server/api";
import { go, place } from "../address.ts";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { Instant } from "../components/instant.tsx";
import { Loaded } from "../components/problem.tsx";
import { fieldOf } from "../form.ts";
import { formatNumber, zoneOffset } from "../format.ts";
import { words } from "../language/language.ts";
import { queueWords } from "../language/queue.ts";
import { instantAt, wallClock } from "../wall-clock.ts";
import { queueHref } from "./places.ts";

interface SearchProps {
  readonly source: string;
  readonly topic: string;
}

type List = AnswerOf<"queueMessages">;

const NAMES = ["key", "id", "type", "after", "before"] as const;

function askedFor(): Readonly<Partial<Record<(typeof NAMES)[number], string>>> {
  const { query } = place.value;
  return Object.fromEntries(NAMES.flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : [])));
}

export function Search({ source, topic }: SearchProps) {
  const asked = askedFor();
  const cursor = place.value.query.get("cursor") ?? undefined;
  const key = JSON.stringify([source, topic, asked, cursor]);
  const polled = usePolled(
    key,
    async (signal) =>
      (await call("queueMessages", { source, topic, query: { ...asked, ...(cursor && { cursor }) }, signal })).answer,
    { everyMs: 0 },
  );
  const { find } = queueWords.value;
  const isAsked = Object.keys(asked).length > 0;
  return (
    <section>
      <h2>{find.title}</h2>
      <SearchForm key={JSON.stringify(asked)} {...{ source, topic }} />
      <Loaded polled={polled}>
        {(list) => (
          <>
            <Told list={list} isAsked={isAsked} />
            {list.items.length === 0 ? (
              <p class="empty">{find.none}</p>
            ) : (
              <MessageRows {...{ source, topic }} messages={list.items} />
            )}
            <Pages {...{ source, topic, list }} />
          </>
        )}
      </Loaded>
    </section>
  );
}

function SearchForm({ source, topic }: SearchProps) {
  const asked = askedFor();
  const { find } = queueWords.value;
  function search(event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): void {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const at = (name: string): string | undefined => instantAt(fieldOf(form, name));
    const query = { key: fieldOf(form, "key"), id: fieldOf(form, "id"), type: fieldOf(form, "type") };
    go(queueHref(source, { topic }, { ...query, after: at("after"), before: at("before") }));
  }
  const clock = (text: string | undefined): string => (text === undefined ? "" : wallClock(new Date(text)));
  return (
    <form class="filter" onSubmit={search}>
      <div class="fields">
        <label>
          {find.key}
          <input name="key" class="mono" defaultValue={asked.key ?? ""} maxLength={255} autocomplete="off" />
        </label>
        <label>
          {find.id}
          <input name="id" class="mono" defaultValue={asked.id ?? ""} pattern="\d{1,19}" autocomplete="off" />
        </label>
        <label>
          {find.type}
          <input name="type" class="mono" defaultValue={asked.type ?? ""} maxLength={255} autocomplete="off" />
        </label>
        <label>
          {find.from}
          <input name="after" type="datetime-local" defaultValue={clock(asked.after)} />
        </label>
        <label>
          {find.to}
          <input name="before" type="datetime-local" defaultValue={clock(asked.before)} />
        </label>
        <button type="submit" class="main">
          {find.search}
        </button>
      </div>
      <p class="hint">
        {find.zone(zoneOffset())}
        {Object.keys(asked).length > 0 && (
          <>
            {" "}
            <a href={queueHref(source, { topic })}>{find.clear}</a>
          </>
        )}
      </p>
    </form>
  );
}

/** 202611 -> 2026-11 */
export function monthText(month: number): string {
  return `${Math.floor(month / 100)}-${String(month % 100).padStart(2, "0")}`;
}

function Told({ isAsked, list: { items, searched } }: { readonly list: List; readonly isAsked: boolean }) {
  const { find } = queueWords.value;
  const { absentMonths, complete, droppedMonths, months, stopped } = searched;
  const all = (list: readonly number[]): string => list.map(monthText).join(", ");
  const how = { end: complete ? find.complete : find.incomplete, limit: find.more, budget: find.budget }[stopped];
  return (
    <>
      <p class="told">
        <strong>{isAsked ? find.found(formatNumber(items.length)) : find.newest}</strong>
        {" · "}
        {months.length === 0 ? find.noMonths : find.months(all(months))}
        {" · "}
        {how}
        {isAsked && absentMonths.length > 0 && absentMonths.length <= 12 && ` · ${find.absent(all(absentMonths))}`}
      </p>
      {droppedMonths.length > 0 && (
        <ul class="told">
          {droppedMonths.map(({ archive, author, droppedAt, month, reason }) => (
            <li key={month}>
              <span class="tag tag-held">{find.dropped(monthText(month), author)}</span> <Instant at={droppedAt} />{" "}
              <q class="reason">{reason}</q> {archive === null ? find.noArchive : find.archive(archive)}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function MessageRows({ messages, source, topic }: SearchProps & { readonly messages: List["items"] }) {
  const { find } = queueWords.value;
  return (
    <table class="rows" data-rows>
      <thead>
        <tr>
          {[find.id, find.key, find.type, find.sent, find.partition, find.producer].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {messages.map(({ id, key, partition, producer, sentAt, type }) => (
          <tr key={id}>
            <th scope="row">
              <a data-row class="num" href={queueHref(source, { topic, message: id })}>
                {id}
              </a>
            </th>
            <td data-label={find.key} class="mono wide">
              {key === undefined ? <span class="quiet">–</span> : <span class="cut">{key}</span>}
            </td>
            <td data-label={find.type}>{type ?? <span class="quiet">–</span>}</td>
            <td data-label={find.sent}>
              <Instant at={sentAt} />
            </td>
            <td data-label={find.partition} class="num">
              {partition}
            </td>
            <td data-label={find.producer}>{producerText(producer) || <span class="quiet">–</span>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function producerText({ group, ip, port }: List["items"][number]["producer"]): string {
  const address = ip === undefined ? undefined : port === undefined ? ip : `${ip}:${port}`;
  return [group, address].filter((part) => part !== undefined).join(" ");
}

function Pages({ list: { next, searched }, source, topic }: SearchProps & { readonly list: List }) {
  const { common } = words.value;
  const isFirst = place.value.query.get("cursor") === null;
  return (
    <p class="pages">
      {!isFirst && (
        <a class="button" data-newer href={queueHref(source, { topic }, askedFor())}>
          {common.newer}
        </a>
      )}
      {next !== null && (
        <a class="button" data-older href={queueHref(source, { topic }, { ...askedFor(), cursor: next })}>
          {searched.stopped === "budget" ? queueWords.value.find.goOn : common.older}
        </a>
      )}
    </p>
  );
}
