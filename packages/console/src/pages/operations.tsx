import { useSignal } from "@preact/signals";
import type { AnswerOf } from "rowpost-server/api";
import { hrefOf } from "../address.ts";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { Instant } from "../components/instant.tsx";
import { Loaded } from "../components/problem.tsx";
import { ReasonDialog, RouteButton } from "../components/reason-dialog.tsx";
import { StateMark } from "../components/state.tsx";
import { TableHead } from "../components/table-head.tsx";
import { fieldOf } from "../form.ts";
import { formatCount, formatNumber } from "../format.ts";
import { words } from "../language/language.ts";
import type { PageProps } from "./page.ts";

type Operation = AnswerOf<"operations">["items"][number];

const POLL_MS = 2_000;

export function OperationsPage({ source }: PageProps) {
  const load = async (signal: AbortSignal) => (await call("operations", { source, signal })).answer;
  const polled = usePolled(`operations ${source}`, load, { everyMs: POLL_MS, isPage: true });
  const { bulk: texts } = words.value;
  return (
    <>
      <h1 tabIndex={-1}>{texts.title}</h1>
      <p class="told">
        {texts.here} <a href={hrefOf(source, "audit", { query: { result: "begun" } })}>{texts.interrupted}</a>
      </p>
      <Loaded polled={polled}>
        {({ items }) => <OperationTable operations={items} source={source} again={polled.again} />}
      </Loaded>
    </>
  );
}

function OperationTable({
  operations,
  ...shared
}: Pick<RowProps, "again" | "source"> & { readonly operations: readonly Operation[] }) {
  const { bulk: texts } = words.value;
  const { columns } = texts;
  if (operations.length === 0) return <p class="empty">{texts.none}</p>;
  return (
    <table class="rows" data-rows>
      <TableHead columns={columns} names={["started", "what", "state", "progress", "who", "reason", "actions"]} />
      <tbody>
        {operations.map((operation) => (
          <OperationRow key={operation.id} operation={operation} {...shared} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  readonly operation: Operation;
  readonly source: string;
  readonly again: () => void;
}

const TAGS = {
  ...({ preview: "tag", running: "tag-held" } as const),
  ...({ done: "tag-good", cancelled: "tag", failed: "tag-bad" } as const),
};

function OperationRow({ again, operation, source }: RowProps) {
  const { author, changed, error, kind, left, reason, startedAt, state, total, vanished } = operation;
  const { bulk: texts } = words.value;
  const { columns } = texts;
  const doneCount = changed + left + vanished;
  return (
    <tr>
      <th scope="row">
        <Instant at={startedAt} />
      </th>
      <td data-label={columns.what} class="whole">
        {texts.kinds[kind]}
      </td>
      <td data-label={columns.state}>
        <span class={`tag ${TAGS[state]}`}>{texts.states[state]}</span>
        {error !== null && <q class="reason">{error}</q>}
      </td>
      <td data-label={columns.progress} class="wide">
        <progress value={doneCount} max={Math.max(1, total.value)} aria-label={columns.progress} />
        <div class="num">{texts.sum(formatNumber(changed), formatCount(total))}</div>
        {vanished > 0 && <div class="quiet">{texts.vanished(formatNumber(vanished))}</div>}
        {left > 0 && <Conflicts count={left} id={operation.id} source={source} />}
      </td>
      <td data-label={columns.who}>
        <span class="cut">{author}</span>
      </td>
      <td data-label={columns.reason} class="wide">
        {reason}
      </td>
      <td data-label={columns.actions}>
        {state === "running" && <Cancel operation={operation} source={source} again={again} />}
      </td>
    </tr>
  );
}

function Cancel({ again, operation, source }: RowProps) {
  const isOpen = useSignal(false);
  const { bulk: texts } = words.value;
  return (
    <>
      <RouteButton
        route="cancelOperation"
        label={texts.cancel}
        open={() => {
          isOpen.value = true;
        }}
      />
      {isOpen.value && (
        <ReasonDialog
          title={`${texts.cancel} · ${texts.kinds[operation.kind]}`}
          about={texts.aboutCancel}
          verb={texts.cancel}
          done={texts.cancelled}
          act={async (form) => {
            const body = { reason: fieldOf(form, "reason") };
            await call("cancelOperation", { source, operation: operation.id, body });
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

/** Loaded when it is opened. */
function Conflicts({ count, id, source }: { readonly count: number; readonly id: string; readonly source: string }) {
  const isOpen = useSignal(false);
  const { bulk: texts } = words.value;
  return (
    <details
      onToggle={({ currentTarget }) => {
        isOpen.value = currentTarget.open;
      }}
    >
      <summary>{texts.conflicts(formatNumber(count))}</summary>
      {isOpen.value && <ConflictList id={id} source={source} />}
    </details>
  );
}

function ConflictList({ id, source }: { readonly id: string; readonly source: string }) {
  const load = async (signal: AbortSignal) => (await call("operation", { source, operation: id, signal })).answer;
  const polled = usePolled(`operation ${id}`, load, { everyMs: 0 });
  return (
    <Loaded polled={polled}>
      {({ conflicts }) => (
        <ul class="samples">
          {conflicts.map((conflict) => (
            <li key={conflict.id}>
              <a class="num" href={hrefOf(source, "messages", { id: conflict.id })}>
                {conflict.id}
              </a>{" "}
              <StateMark state={conflict.state} />
            </li>
          ))}
        </ul>
      )}
    </Loaded>
  );
}
