import type { AnswerOf } from "rowpost-server/api";
import { words } from "../language/language.ts";
import { InstantAndSpan } from "./instant.tsx";

type Detail = AnswerOf<"message">;

interface Event {
  readonly at: string;
  readonly what: string;
  readonly by?: string;
  readonly why?: string;
}

export function Timeline({ detail }: { readonly detail: Detail }) {
  const { message: texts } = words.value;
  const nowIso = detail.asOf;
  return (
    <section>
      <h2>{texts.timeline}</h2>
      <ol class="timeline">
        {eventsOf(detail).map(({ at, by, what, why }) => (
          <li key={`${at} ${what}`} class={at > nowIso ? "ahead" : undefined}>
            <InstantAndSpan at={at} />
            <span>
              <span class="event">{what}</span>
              {by !== undefined && <span class="quiet"> {words.value.overview.by(by)}</span>}
              {why !== undefined && <q class="reason">{why}</q>}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function eventsOf({ changes, message }: Detail): Event[] {
  const { events } = words.value.message;
  const { consumedAt, createdBy, deliverAt, failReason, gmtCreate, gmtModified, lastRetryAt, messageId } = message;
  const { nextRetryAt, retryCount, sentAt } = message;
  const found: (Event | undefined)[] = [
    { at: gmtCreate, what: events.created, ...(createdBy ? { by: createdBy } : {}) },
    known(deliverAt, events.deliverAt),
    known(lastRetryAt, events.lastTry(retryCount), failReason),
    known(sentAt, events.sent, messageId),
    known(consumedAt, events.consumed),
    known(nextRetryAt, events.next),
    known(gmtModified, events.modified),
    ...changes.map(({ action, at, author, reason }) => ({ at, what: action, by: author, why: reason })),
  ];
  return found.filter((event) => event !== undefined).sort((left, right) => Date.parse(left.at) - Date.parse(right.at));
}

/** Undefined: it has not happened and is not planned. */
function known(at: string | null | undefined, what: string, why?: string | null): Event | undefined {
  if (at === null || at === undefined) return undefined;
  return why === null || why === undefined ? { at, what } : { at, what, why };
}
