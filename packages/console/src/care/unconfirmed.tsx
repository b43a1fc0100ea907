import { useSignal } from "@preact/signals";
import type { AnswerOf } from "rowpost-server/api";
import { hrefOf } from "../address.ts";
import { call } from "../api/client.ts";
import { now, usePolled } from "../api/polling.ts";
import { CountOf } from "../components/counts.tsx";
import { Instant, InstantAndSpan } from "../components/instant.tsx";
import { ReasonDialog, RouteButton } from "../components/reason-dialog.tsx";
import { TableHead } from "../components/table-head.tsx";
import { ToldPage } from "../components/told-page.tsx";
import { fieldOf } from "../form.ts";
import { formatNumber } from "../format.ts";
import { careWords } from "../language/care.ts";
import { words } from "../language/language.ts";
import type { PageProps } from "../pages/page.ts";

type List = AnswerOf<"unconfirmed">;
type Message = List["items"][number];

const POLL_MS = 10_000;

export function UnconfirmedPage({ source }: PageProps) {
  const load = async (signal: AbortSignal) => (await call("unconfirmed", { source, signal })).answer;
  const polled = usePolled(`unconfirmed ${source}`, load, { everyMs: POLL_MS, isPage: true });
  const { unconfirmed: texts } = careWords.value;
  return (
    <ToldPage texts={texts} polled={polled}>
      {(list) => (
        <>
          {list.items.length === 0 ? (
            <div class="empty">
              <strong>{texts.none}</strong>
              <p>{texts.noneText}</p>
            </div>
          ) : (
            <>
              <Types types={list.types} />
              <Messages list={list} source={source} again={polled.again} />
            </>
          )}
          <Unknown unknown={list.unknown} source={source} />
        </>
      )}
    </ToldPage>
  );
}

function Types({ types }: { readonly types: List["types"] }) {
  const { unconfirmed: texts } = careWords.value;
  const { types: columns } = texts;
  return (
    <table class="rows">
      <thead>
        <tr>
          <th scope="col">{columns.type}</th>
          <th scope="col" class="right">
            {columns.overdue}
          </th>
          <th scope="col" class="right">
            {columns.waiting}
          </th>
          <th scope="col">{columns.consumers}</th>
        </tr>
      </thead>
      <tbody>
        {types.map(({ consumers, overdue, type, waiting }) => (
          <tr key={type}>
            <th scope="row">
              <span class="cut">{type}</span>
            </th>
            <td class={overdue.value > 0 ? "right count-failed" : "right"} data-label={columns.overdue}>
              <CountOf count={overdue} />
            </td>
            <td class="right" data-label={columns.waiting}>
              <CountOf count={waiting} />
            </td>
            <td data-label={columns.consumers}>
              {consumers.length === 0 ? <span class="quiet">{texts.anyone}</span> : consumers.join(", ")}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Messages({
  again,
  list: { items, more },
  source,
}: {
  readonly list: List;
  readonly source: string;
  readonly again: () => void;
}) {
  const { unconfirmed: texts } = careWords.value;
  const { columns } = texts;
  const hasMissing = items.some(({ missing }) => missing.length > 0);
  return (
    <section>
      {more && <p class="told">{texts.more(formatNumber(items.length))}</p>}
      <table class="rows" data-rows>
        <TableHead
          columns={columns}
          names={["id", "type", "key", "deadline", "confirmed", "missing", "reason", "actions"]}
        />
        <tbody>
          {items.map((message) => (
            <MessageRow key={message.id} message={message} source={source} again={again} />
          ))}
        </tbody>
      </table>
      {hasMissing && <p class="hint">{texts.guess}</p>}
    </section>
  );
}

interface RowProps {
  readonly message: Message;
  readonly source: string;
  readonly again: () => void;
}

function MessageRow({ again, message, source }: RowProps) {
  const { unconfirmed: texts } = careWords.value;
  const { columns } = texts;
  const { confirmedBy, failReason, id, key, missing, nextRetryAt, type } = message;
  const isOverdue = nextRetryAt !== null && Date.parse(nextRetryAt) <= now.value;
  return (
    <tr>
      <th scope="row">
        <a data-row class="num" href={hrefOf(source, "messages", { id })}>
          {id}
        </a>
      </th>
      <td data-label={columns.type}>
        <span class="cut">{type}</span>
      </td>
      <td data-label={columns.key} class="mono">
        <span class="cut">{key}</span>
      </td>
      <td data-label={columns.deadline}>
        {isOverdue && <span class="tag tag-bad">{texts.overdue}</span>}{" "}
        {nextRetryAt !== null && <InstantAndSpan at={nextRetryAt} />}
      </td>
      <td data-label={columns.confirmed}>{confirmedBy.join(", ") || <span class="quiet">–</span>}</td>
      <td data-label={columns.missing}>{missing.join(", ") || <span class="quiet">–</span>}</td>
      <td data-label={columns.reason} class="wide">
        {failReason === null ? <span class="quiet">–</span> : <span class="cut">{failReason}</span>}
      </td>
      <td data-label={columns.actions}>
        <div class="row-actions">
          <Change {...{ again, message, source }} what="confirm" />
          <Change {...{ again, message, source }} what="resend" />
        </div>
      </td>
    </tr>
  );
}

/** With a version check: of two concurrent changes the later one is refused. */
function Change({ again, message, source, what }: RowProps & { readonly what: "confirm" | "resend" }) {
  const seen = useSignal<string | undefined>(undefined);
  const { message: texts } = words.value;
  const label = `${texts.actions[what]}…`;
  return (
    <>
      <RouteButton
        route={what}
        least={what === "resend" ? "admin" : "operator"}
        label={label}
        of={message.id}
        open={() => {
          seen.value = `"${message.lockVersion ?? message.state}"`;
        }}
      />
      {seen.value !== undefined && (
        <ReasonDialog
          title={`${texts.actions[what]} · ${message.id}`}
          about={texts.about[what]}
          verb={texts.actions[what]}
          done={texts.done[what]}
          act={async (form) => {
            const body = { reason: fieldOf(form, "reason") };
            await call(what, { source, id: message.id, ifMatch: seen.value ?? "", body });
            again();
          }}
          close={() => {
            seen.value = undefined;
          }}
        />
      )}
    </>
  );
}

function Unknown({ source, unknown }: { readonly source: string; readonly unknown: List["unknown"] }) {
  const { unconfirmed: texts } = careWords.value;
  const { unknownColumns: columns } = texts;
  return (
    <section>
      <h2>{texts.unknown}</h2>
      <p class="told">{texts.unknownAbout}</p>
      {unknown.length === 0 ? (
        <p class="quiet">{texts.noUnknown}</p>
      ) : (
        <table class="rows">
          <TableHead columns={columns} names={["last", "times", "type", "key", "consumer", "said", "message"]} />
          <tbody>
            {unknown.map(({ consumer, error, isThere, key, lastAt, times, type }) => (
              <tr key={JSON.stringify([type, key, consumer])}>
                <th scope="row">
                  <Instant at={lastAt} />
                </th>
                <td data-label={columns.times} class="num">
                  {formatNumber(times)}
                </td>
                <td data-label={columns.type}>{type}</td>
                <td data-label={columns.key} class="mono">
                  <span class="cut">{key}</span>
                </td>
                <td data-label={columns.consumer}>{consumer ?? <span class="quiet">{texts.noName}</span>}</td>
                <td data-label={columns.said}>{error ?? texts.consumed}</td>
                <td data-label={columns.message}>
                  {isThere ? (
                    <a href={hrefOf(source, "messages", { query: { type, key, in: "live,archive" } })}>{texts.there}</a>
                  ) : (
                    <span class="quiet">{texts.notThere}</span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
