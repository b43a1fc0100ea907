/** Dead letters and redeliveries of a group, by error; changed one by one or all that match. */

import { useSignal } from "@preact/signals";
import type { AnswerOf } from "rowpost-server/api";
import { go, place } from "../address.ts";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { Instant } from "../components/instant.tsx";
import { Loaded } from "../components/problem.tsx";
import { ReasonDialog, RouteButton } from "../components/reason-dialog.tsx";
import { TableHead } from "../components/table-head.tsx";
import { fieldOf } from "../form.ts";
import { formatNumber } from "../format.ts";
import { words } from "../language/language.ts";
import { queueWords } from "../language/queue.ts";
import { EditDialog } from "./edit-dialog.tsx";
import { queueHref } from "./places.ts";

interface DeadProps {
  readonly source: string;
  readonly topic: string;
  readonly group: string;
}

type Letter = AnswerOf<"queueDead">["items"][number];

const STATES = ["dead", "waiting", "both"] as const;

export function DeadLetters({ group, source, topic }: DeadProps) {
  const { query } = place.value;
  const error = query.get("error") ?? undefined;
  const cursor = query.get("cursor") ?? undefined;
  const state = STATES.find((name) => name === query.get("state")) ?? "dead";
  const asked = { state, ...(error && { error }), ...(cursor && { cursor }) };
  const polled = usePolled(
    JSON.stringify([source, topic, group, asked]),
    async (signal) => (await call("queueDead", { source, topic, group, query: asked, signal })).answer,
    { everyMs: 0 },
  );
  const { dead: texts } = queueWords.value;
  const { common } = words.value;
  const about = { source, topic, group, again: polled.again };
  const href = (more: Readonly<Record<string, string | undefined>>): string =>
    queueHref(source, { topic, group }, { state, error, ...more });
  return (
    <section>
      <h2>{texts.title}</h2>
      <Filter key={`${state} ${error}`} {...{ source, topic, group, state, error }} />
      <Loaded polled={polled}>
        {({ items, next }) =>
          items.length === 0 ? (
            <p class="empty">{texts.none}</p>
          ) : (
            <>
              {state !== "waiting" && (
                <div class="actions">
                  <Change {...about} what="redeliver" error={error} />
                  <Change {...about} what="discard" error={error} />
                </div>
              )}
              <Letters {...about} letters={items} />
              <p class="pages">
                {cursor !== undefined && (
                  <a class="button" data-newer href={href({})}>
                    {common.newer}
                  </a>
                )}
                {next !== null && (
                  <a class="button" data-older href={href({ cursor: next })}>
                    {common.older}
                  </a>
                )}
              </p>
            </>
          )
        }
      </Loaded>
    </section>
  );
}

function Filter({
  error,
  group,
  source,
  state,
  topic,
}: DeadProps & { readonly state: (typeof STATES)[number]; readonly error: string | undefined }) {
  const { dead: texts } = queueWords.value;
  return (
    <form
      class="filter"
      onSubmit={(event) => {
        event.preventDefault();
        const form = new FormData(event.currentTarget);
        go(queueHref(source, { topic, group }, { state: fieldOf(form, "state"), error: fieldOf(form, "error") }));
      }}
    >
      <div class="fields">
        <label>
          {texts.error}
          <input name="error" defaultValue={error ?? ""} maxLength={200} autocomplete="off" />
        </label>
        <label>
          {texts.state}
          <select name="state">
            {STATES.map((name) => (
              <option key={name} value={name} selected={name === state}>
                {texts.states[name]}
              </option>
            ))}
          </select>
        </label>
        <button type="submit">{texts.filter}</button>
      </div>
    </form>
  );
}

type Shared = DeadProps & { readonly again: () => void };

function Letters({ again, group, letters, source, topic }: Shared & { readonly letters: readonly Letter[] }) {
  const { dead: texts } = queueWords.value;
  const { columns } = texts;
  return (
    <table class="rows" data-rows>
      <TableHead columns={columns} names={["id", "key", "attempts", "since", "error", "actions"]} />
      <tbody>
        {letters.map((letter) => (
          <tr key={letter.id}>
            <th scope="row">
              <a data-row class="num" href={queueHref(source, { topic, message: letter.id })}>
                {letter.id}
              </a>
              {letter.state === "waiting" && <div class="tag tag-held">{texts.states.waiting}</div>}
              {!letter.isThere && <div class="quiet">{texts.gone}</div>}
            </th>
            <td data-label={columns.key} class="mono">
              {letter.key === undefined ? <span class="quiet">–</span> : <span class="cut">{letter.key}</span>}
            </td>
            <td data-label={columns.attempts} class="num">
              {formatNumber(letter.attempt)}
            </td>
            <td data-label={columns.since}>
              <Instant at={letter.since} />
            </td>
            <td data-label={columns.error} class="wide">
              <span class="cut" title={letter.error}>
                {letter.error}
              </span>
            </td>
            <td data-label={columns.actions}>
              <div class="row-actions">
                <Change {...{ again, group, source, topic }} what="redeliver" id={letter.id} />
                {letter.state === "dead" && (
                  <>
                    <Edit {...{ again, group, source, topic }} id={letter.id} />
                    <Change {...{ again, group, source, topic }} what="discard" id={letter.id} />
                  </>
                )}
              </div>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface ChangeProps extends Shared {
  readonly what: "redeliver" | "discard";
  /** Undefined: all that match. */
  readonly id?: string;
  readonly error?: string | undefined;
}

function Change({ again, error, group, id, source, topic, what }: ChangeProps) {
  const isOpen = useSignal(false);
  const { about, actions, done } = queueWords.value;
  const isAll = id === undefined;
  const label = isAll ? actions[`${what}All`] : actions[what];
  const route = what === "redeliver" ? "queueRedeliver" : "queueDiscard";
  return (
    <>
      <RouteButton
        route={route}
        least={what === "discard" ? "admin" : "operator"}
        label={label}
        {...(isAll ? {} : { of: id })}
        open={() => {
          isOpen.value = true;
        }}
      />
      {isOpen.value && (
        <ReasonDialog
          title={`${label} · ${id ?? group}`}
          about={about[what](isAll ? about.all : about.one)}
          verb={label.replace("…", "")}
          done={done[what]}
          act={async (form) => {
            const reason = fieldOf(form, "reason");
            const which = isAll ? { all: true as const, ...(error && { error }) } : { ids: [id] };
            await call(route, { source, topic, group, body: { reason, ...which } });
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

function Edit({ id, ...shared }: Shared & { readonly id: string }) {
  const isOpen = useSignal(false);
  return (
    <>
      <RouteButton
        route="queueEdit"
        least="admin"
        label={queueWords.value.actions.edit}
        of={id}
        open={() => {
          isOpen.value = true;
        }}
      />
      {isOpen.value && (
        <EditDialog
          {...shared}
          id={id}
          close={() => {
            isOpen.value = false;
          }}
        />
      )}
    </>
  );
}
