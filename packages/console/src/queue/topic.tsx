import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { CountOf } from "../components/counts.tsx";
import { Loaded } from "../components/problem.tsx";
import { TableHead } from "../components/table-head.tsx";
import { formatDuration, formatNumber } from "../format.ts";
import { queueWords } from "../language/queue.ts";
import { Crumbs } from "./crumbs.tsx";
import { GroupButtons } from "./group-buttons.tsx";
import { type Group, GroupState } from "./group-state.tsx";
import { queueHref } from "./places.ts";
import { Search } from "./search.tsx";

const POLL_MS = 5_000;

interface TopicProps {
  readonly source: string;
  readonly topic: string;
}

export function TopicView({ source, topic }: TopicProps) {
  const load = async (signal: AbortSignal) => (await call("queueGroups", { source, topic, signal })).answer;
  const polled = usePolled(`queue ${source} ${topic}`, load, { everyMs: POLL_MS, isPage: true });
  const texts = queueWords.value;
  return (
    <>
      <Crumbs source={source} />
      <h1 tabIndex={-1}>
        <span class="quiet">{texts.topic}</span> {topic}
      </h1>
      <Loaded polled={polled}>
        {({ items }) => (
          <section>
            <h2>{texts.groups}</h2>
            {items.length === 0 ? (
              <p class="empty">{texts.noGroups}</p>
            ) : (
              <Groups groups={items} {...{ source, topic }} again={polled.again} />
            )}
          </section>
        )}
      </Loaded>
      <Search source={source} topic={topic} />
    </>
  );
}

function Groups({
  again,
  groups,
  source,
  topic,
}: TopicProps & { readonly groups: readonly Group[]; readonly again: () => void }) {
  const { columns } = queueWords.value;
  return (
    <table class="rows" data-rows>
      <TableHead
        columns={columns}
        names={["group", "state", "lag", "behind", "waiting", "dead", "stuck", "actions"]}
        right={["lag", "waiting", "dead"]}
      />
      <tbody>
        {groups.map((group) => (
          <GroupRow key={group.group} {...{ again, group, source, topic }} />
        ))}
      </tbody>
    </table>
  );
}

function GroupRow({ again, group, source, topic }: TopicProps & { readonly group: Group; readonly again: () => void }) {
  const { columns } = queueWords.value;
  return (
    <tr>
      <th scope="row">
        <a data-row href={queueHref(source, { topic, group: group.group })}>
          {group.group}
        </a>
      </th>
      <td data-label={columns.state}>
        <GroupState group={group} />
      </td>
      <td class="right" data-label={columns.lag}>
        <CountOf count={group.lag} />
      </td>
      <td data-label={columns.behind}>
        {group.lag.value === 0 ? <span class="quiet">–</span> : formatDuration(group.lagMs)}
      </td>
      <td class="right" data-label={columns.waiting}>
        <CountOf count={group.waiting} />
      </td>
      <td class="right" data-label={columns.dead}>
        <a
          class={group.dead.value > 0 ? "count-failed" : undefined}
          href={queueHref(source, { topic, group: group.group })}
        >
          <CountOf count={group.dead} />
        </a>
      </td>
      <td data-label={columns.stuck} class="wide">
        <HeldUpBy group={group} {...{ source, topic }} />
      </td>
      <td data-label={columns.actions}>
        <div class="row-actions">
          <GroupButtons group={group} {...{ again, source, topic }} />
        </div>
      </td>
    </tr>
  );
}

/** The message that fails again and again, with its error; else the first unfinished one. */
function HeldUpBy({ group: { partitions }, source, topic }: TopicProps & { readonly group: Group }) {
  const texts = queueWords.value;
  const failing = partitions.map(({ oldestWaiting }) => oldestWaiting).find((each) => each !== undefined);
  const [late] = partitions.filter(({ head }) => head !== undefined).sort((left, right) => right.lagMs - left.lagMs);
  const id = failing?.id ?? late?.head?.id;
  if (id === undefined) return <span class="quiet">–</span>;
  return (
    <>
      <a class="num" href={queueHref(source, { topic, message: id })}>
        {id}
      </a>{" "}
      {failing !== undefined && <span class="quiet">{texts.attempt(formatNumber(failing.attempt))}</span>}
      {failing === undefined && late?.head?.key !== undefined && <span class="mono cut">{late.head.key}</span>}
      {failing?.error !== undefined && (
        <q class="reason cut" title={failing.error}>
          {failing.error}
        </q>
      )}
    </>
  );
}
