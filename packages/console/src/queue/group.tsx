import { useSignal } from "@preact/signals";
import type { AnswerOf } from "rowpost-server/api";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { CountOf } from "../components/counts.tsx";
import { Instant } from "../components/instant.tsx";
import { Loaded } from "../components/problem.tsx";
import { ReasonDialog, RouteButton } from "../components/reason-dialog.tsx";
import { TableHead } from "../components/table-head.tsx";
import { fieldOf } from "../form.ts";
import { formatDuration } from "../format.ts";
import { words } from "../language/language.ts";
import { queueWords } from "../language/queue.ts";
import { Crumbs } from "./crumbs.tsx";
import { DeadLetters } from "./dead-letters.tsx";
import { GroupButtons } from "./group-buttons.tsx";
import { type Group, GroupState } from "./group-state.tsx";
import { queueHref } from "./places.ts";

const POLL_MS = 5_000;

interface GroupProps {
  readonly source: string;
  readonly topic: string;
  readonly group: string;
}

export function GroupView({ group: name, source, topic }: GroupProps) {
  const load = async (signal: AbortSignal) => (await call("queueGroups", { source, topic, signal })).answer;
  const polled = usePolled(`queue ${source} ${topic}`, load, { everyMs: POLL_MS, isPage: true });
  const loadLog = async (signal: AbortSignal) =>
    (await call("queueRewinds", { source, topic, group: name, signal })).answer;
  const log = usePolled(`rewinds ${source} ${topic} ${name}`, loadLog, { everyMs: 0 });
  const texts = queueWords.value;
  const newest = log.answer?.items[0];
  function again(): void {
    polled.again();
    log.again();
  }
  return (
    <>
      <Crumbs source={source} topic={topic} />
      <h1 tabIndex={-1}>
        <span class="quiet">{texts.columns.group}</span> {name}
      </h1>
      <Loaded polled={polled}>
        {({ items }) => {
          const group = items.find((each) => each.group === name);
          if (group === undefined) return <p class="empty">{texts.noGroups}</p>;
          const canUndo = newest !== undefined && newest.undoOf === null;
          return (
            <>
              <p>
                <GroupState group={group} />
              </p>
              <div class="actions">
                <GroupButtons {...{ group, source, topic, again, canUndo }} />
              </div>
              <Partitions {...{ group, source, topic }} again={polled.again} />
            </>
          );
        }}
      </Loaded>
      <DeadLetters {...{ source, topic }} group={name} />
      <section>
        <h2>{texts.rewind.log}</h2>
        <Loaded polled={log}>{({ items }) => <Rewinds entries={items} />}</Loaded>
      </section>
    </>
  );
}

interface PartitionsProps {
  readonly group: Group;
  readonly source: string;
  readonly topic: string;
  readonly again: () => void;
}

function Partitions({ again, group, source, topic }: PartitionsProps) {
  const { columns } = queueWords.value;
  return (
    <section>
      <table class="rows">
        <TableHead
          columns={columns}
          names={["partition", "lag", "behind", "waiting", "dead", "member", "moved", "head"]}
          right={["lag", "waiting", "dead"]}
        />
        <tbody>
          {group.partitions.map((each) => (
            <PartitionRow key={each.partition} partition={each} {...{ again, source, topic }} group={group.group} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface PartitionRowProps extends GroupProps {
  readonly partition: Group["partitions"][number];
  readonly again: () => void;
}

function PartitionRow({ again, group, partition: each, source, topic }: PartitionRowProps) {
  const { columns, ...texts } = queueWords.value;
  return (
    <tr>
      <th scope="row" data-label={columns.partition} class="num">
        {each.partition}
      </th>
      <td class="right" data-label={columns.lag}>
        <CountOf count={each.lag} />
      </td>
      <td data-label={columns.behind}>
        {each.lag.value === 0 ? <span class="quiet">–</span> : formatDuration(each.lagMs)}
      </td>
      <td class="right" data-label={columns.waiting}>
        <CountOf count={each.waiting} />
      </td>
      <td class="right" data-label={columns.dead}>
        <CountOf count={each.dead} />
      </td>
      <td data-label={columns.member}>
        {each.member === undefined ? (
          <span class="quiet">{texts.nobody}</span>
        ) : (
          <>
            <span class="cut">{each.member.label ?? each.member.owner}</span>
            {each.member.seenMsAgo !== undefined && (
              <div class="quiet">{words.value.overview.lastSign(formatDuration(each.member.seenMsAgo))}</div>
            )}
          </>
        )}
      </td>
      <td data-label={columns.moved}>
        {each.movedMsAgo === undefined ? texts.never : words.value.bar.ago(formatDuration(each.movedMsAgo))}
      </td>
      <td data-label={columns.head}>
        {each.head === undefined ? (
          <span class="quiet">–</span>
        ) : (
          <>
            <a class="num" href={queueHref(source, { topic, message: each.head.id })}>
              {each.head.id}
            </a>{" "}
            <Skip {...{ again, source, topic }} group={group} id={each.head.id} />
          </>
        )}
      </td>
    </tr>
  );
}

function Skip({ again, group, id, source, topic }: GroupProps & { readonly id: string; readonly again: () => void }) {
  const isOpen = useSignal(false);
  const { about, actions, done } = queueWords.value;
  return (
    <>
      <RouteButton
        route="queueSkip"
        label={actions.skip}
        of={id}
        open={() => {
          isOpen.value = true;
        }}
      />
      {isOpen.value && (
        <ReasonDialog
          title={`${actions.skip} · ${id}`}
          about={about.skip(id)}
          verb={actions.skip.replace("…", "")}
          done={done.skip}
          act={async (form) => {
            await call("queueSkip", { source, topic, group, body: { reason: fieldOf(form, "reason"), id } });
            again();
          }}
          close={() => {
            isOpen.value = false;
          }}
        />
      )}
    </>
  );
}

type Entry = AnswerOf<"queueRewinds">["items"][number];

/** One row for each rewind, whatever partitions it moved. */
function Rewinds({ entries }: { readonly entries: readonly Entry[] }) {
  const { rewind: texts } = queueWords.value;
  const { logColumns: columns } = texts;
  const numbers = [...new Set(entries.map(({ rewind }) => rewind))];
  if (numbers.length === 0) return <p class="quiet">{texts.noLog}</p>;
  return (
    <table class="rows">
      <thead>
        <tr>
          {[columns.at, columns.what, columns.who, columns.reason, columns.moves].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {numbers.map((number) => {
          const moves = entries.filter(({ rewind }) => rewind === number);
          const [first] = moves;
          if (first === undefined) return null;
          return (
            <tr key={number}>
              <th scope="row">
                <Instant at={first.at} />
              </th>
              <td data-label={columns.what} class="whole">
                {first.undoOf === null ? texts.number(String(number)) : texts.undoOf(String(first.undoOf))}
              </td>
              <td data-label={columns.who}>
                <span class="cut">{first.author}</span>
              </td>
              <td data-label={columns.reason} class="wide">
                {first.reason}
              </td>
              <td data-label={columns.moves}>
                {moves
                  .toSorted((left, right) => left.partition - right.partition)
                  .map(({ from, partition, to }) => (
                    <div key={partition} class="num moves">
                      <span class="quiet">{partition}:</span> {from} → {to}
                    </div>
                  ))}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
