import type { AnswerOf } from "rowpost-server/api";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { Loaded } from "../components/problem.tsx";
import { formatDuration, formatNumber } from "../format.ts";
import { words } from "../language/language.ts";
import type { PageProps } from "./page.ts";

type Relays = AnswerOf<"relays">;
type Relay = Relays["items"][number];

const POLL_MS = 5_000;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

export function RelaysPage({ source }: PageProps) {
  const load = async (signal: AbortSignal) => (await call("relays", { source, signal })).answer;
  const polled = usePolled(`relays ${source}`, load, { everyMs: POLL_MS, isPage: true });
  const { relays: texts } = words.value;
  return (
    <>
      <h1 tabIndex={-1}>{texts.title}</h1>
      <Loaded polled={polled}>
        {(relays) => (
          <>
            <Shards relays={relays} />
            {relays.items.length === 0 ? <p class="empty">{texts.none}</p> : <RelayTable relays={relays} />}
          </>
        )}
      </Loaded>
    </>
  );
}

function letterOf(relays: Relays, relay: Relay): string {
  return LETTERS[relays.items.indexOf(relay)] ?? "+";
}

/** A cell for each shard, with the letter of its relay. */
function Shards({ relays }: { readonly relays: Relays }) {
  const { relays: texts } = words.value;
  const { total, unowned } = relays.shards;
  if (total === 0) return <p class="quiet">{texts.noShards}</p>;
  return (
    <section>
      <h2>
        {texts.shards} <span class="aside">{texts.shardsText(total - unowned.length, total)}</span>
      </h2>
      <ol class="shards">
        {Array.from({ length: total }, (_, shard) => {
          const owner = relays.items.find(({ shards }) => shards.includes(shard));
          const isUnowned = unowned.includes(shard);
          const name = isUnowned ? texts.unowned : (owner?.label ?? texts.unowned);
          const index = owner === undefined ? 0 : relays.items.indexOf(owner) % 6;
          return (
            <li key={shard} class={isUnowned ? "shard shard-unowned" : `shard shard-${index}`} title={name}>
              <span class="shard-number num">{shard}</span>
              <span aria-hidden="true">{isUnowned || owner === undefined ? "!" : letterOf(relays, owner)}</span>
              <span class="sr-only">{name}</span>
            </li>
          );
        })}
      </ol>
    </section>
  );
}

function RelayTable({ relays }: { readonly relays: Relays }) {
  const { columns } = words.value.relays;
  const titles = [
    ...[columns.relay, columns.seen, columns.shards, columns.inFlight, columns.brokers],
    ...[columns.resting, columns.order, columns.error, columns.version],
  ];
  return (
    <table class="rows" data-rows>
      <thead>
        <tr>
          {titles.map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {relays.items.map((relay) => (
          <RelayRow key={relay.owner} relay={relay} letter={letterOf(relays, relay)} />
        ))}
      </tbody>
    </table>
  );
}

function RelayRow({ letter, relay }: { readonly relay: Relay; readonly letter: string }) {
  const { bar, common, relays: texts } = words.value;
  const { alive, label, report, shards, silentMs } = relay;
  const { columns } = texts;
  return (
    <tr>
      <th scope="row">
        <span class="letter" aria-hidden="true">
          {letter}
        </span>
        {label}
      </th>
      <td data-label={columns.seen}>
        <span class={alive ? "tag tag-good" : "tag tag-bad"}>{alive ? texts.alive : texts.silent}</span>{" "}
        <span class="quiet">{bar.ago(formatDuration(silentMs))}</span>
      </td>
      <td class="num" data-label={columns.shards}>
        {shards.length === 0 ? common.none : shards.length}
      </td>
      {report === undefined ? (
        <td colSpan={6} class="quiet">
          {texts.noReport}
        </td>
      ) : (
        <ReportCells report={report} />
      )}
    </tr>
  );
}

function ReportCells({ report }: { readonly report: NonNullable<Relay["report"]> }) {
  const { bar, common, overview, relays: texts } = words.value;
  const { brokers, inFlight, lastError, moreResting, onFailed, restingTopics, version, windowSize } = report;
  const { columns } = texts;
  return (
    <>
      <td class="num" data-label={columns.inFlight}>
        {formatNumber(inFlight)} / {formatNumber(windowSize)}
      </td>
      <td data-label={columns.brokers}>
        {brokers.map(({ awayForMs, name, reason }) => (
          <div key={name}>
            {name}{" "}
            <span class={awayForMs === undefined ? "tag tag-good" : "tag tag-bad"}>
              {awayForMs === undefined ? texts.reachable : texts.away(formatDuration(awayForMs))}
            </span>
            {reason !== undefined && <q class="reason">{reason}</q>}
          </div>
        ))}
      </td>
      <td data-label={columns.resting}>
        {restingTopics.length === 0 && <span class="quiet">{common.none}</span>}
        {restingTopics.map(({ reason, restsForMs, topic }) => (
          <div key={topic}>
            {topic} <span class="quiet">{overview.restsFor(formatDuration(restsForMs))}</span>
            <q class="reason">{reason}</q>
          </div>
        ))}
        {moreResting > 0 && <div class="quiet">{texts.moreResting(formatNumber(moreResting))}</div>}
      </td>
      <td data-label={columns.order}>{texts.onFailed[onFailed]}</td>
      <td data-label={columns.error}>
        {lastError === undefined ? (
          <span class="quiet">–</span>
        ) : (
          <>
            <q class="reason">{lastError.what}</q> <span class="quiet">{bar.ago(formatDuration(lastError.agoMs))}</span>
          </>
        )}
      </td>
      <td data-label={columns.version}>{version}</td>
    </>
  );
}
