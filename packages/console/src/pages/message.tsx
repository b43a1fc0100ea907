/** Details of a message: what happened, why it is not sent, and its actions. */
import type { ComponentChildren } from "preact";
import type { AnswerOf } from "rowpost-server/api";
import { hrefOf } from "../address.ts";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { Actions } from "../components/actions.tsx";
import { CopyButton } from "../components/copy.tsx";
import { Instant, InstantAndSpan } from "../components/instant.tsx";
import { MessageBody } from "../components/message-body.tsx";
import { type Message, MessageTable } from "../components/message-table.tsx";
import { Loaded } from "../components/problem.tsx";
import { StateMark } from "../components/state.tsx";
import { Timeline } from "../components/timeline.tsx";
import { formatNumber } from "../format.ts";
import { words } from "../language/language.ts";
import { besides } from "../last-list.ts";
import type { PageProps } from "./page.ts";

type Detail = AnswerOf<"message">;

const POLL_MS = 5_000;

export function MessagePage({ id, source }: PageProps & { readonly id: string }) {
  const polled = usePolled(`message ${source} ${id}`, (signal) => call("message", { source, id, signal }), {
    everyMs: POLL_MS,
    isPage: true,
  });
  const { menu, message: texts } = words.value;
  const { next, previous } = besides(id);
  const isStale = polled.problem?.isAway === true;
  return (
    <>
      <p class="crumbs">
        <a href={hrefOf(source, "messages")}>{menu.messages}</a>
        <span class="crumbs-end">
          {previous !== undefined && (
            <a data-newer href={hrefOf(source, "messages", { id: previous })}>
              {texts.previous}
            </a>
          )}
          {next !== undefined && (
            <a data-older href={hrefOf(source, "messages", { id: next })}>
              {texts.next}
            </a>
          )}
        </span>
      </p>
      {polled.answer === undefined && <h1 tabIndex={-1}>{id}</h1>}
      <Loaded polled={polled}>
        {({ answer, etag }) => (
          <>
            <Head message={answer.message} />
            <Copies changes={answer.changes} source={source} />
            <Why detail={answer} source={source} />
            <Actions {...{ source, etag, isStale }} message={answer.message} again={polled.again} />
            <Timeline detail={answer} />
            <MessageBody id={id} source={source} />
            <KeyQueue source={source} message={answer.message} />
            <Changes changes={answer.changes} />
            <Fields message={answer.message} />
          </>
        )}
      </Loaded>
    </>
  );
}

function Head({ message: { archived, id, key, state, topic, type } }: { readonly message: Message }) {
  const { messages } = words.value;
  return (
    <header class="message-head">
      <h1 tabIndex={-1}>
        <span class="quiet">{type}</span> <span class="mono">{key}</span>
      </h1>
      <p>
        <StateMark state={state} />
        {archived && <span class="tag">{messages.archived}</span>}
        <span>
          {messages.columns.id} <span class="num">{id}</span> <CopyButton text={id} />
        </span>
        <span>
          {messages.columns.topic} {topic}
        </span>
      </p>
    </header>
  );
}

function Copies({ changes, source }: { readonly changes: Detail["changes"]; readonly source: string }) {
  const { copying } = words.value.message;
  const links = changes.flatMap(({ copyId, copyOf }) => [
    ...(copyOf === undefined ? [] : [{ id: copyOf, text: copying.of(copyOf) }]),
    ...(copyId === undefined ? [] : [{ id: copyId, text: copying.to(copyId) }]),
  ]);
  if (links.length === 0) return null;
  return (
    <ul class="copies">
      {links.map(({ id, text }) => (
        <li key={id}>
          <a href={hrefOf(source, "messages", { id })}>{text}</a>
        </li>
      ))}
    </ul>
  );
}

/** States whose explanation adds nothing to the page. */
const SAID: readonly string[] = [
  ...["archived", "sent", "confirmation", "consumed", "failed", "delay", "backoff", "no relay"],
];

/** The first rule that holds it back, with its times and names. */
function Why({ detail: { explanation, message }, source }: { readonly detail: Detail; readonly source: string }) {
  const { message: texts } = words.value;
  const { behindId, heldBy, relay, since, text, until } = explanation;
  const held: Readonly<Record<string, string>> = texts.held;
  const isOver = heldBy === "sent" || heldBy === "consumed" || heldBy === "archived";
  return (
    <section class={isOver ? "why why-over" : "why"} aria-label={texts.why}>
      <strong>
        {heldBy === "failed" ? (until === undefined ? texts.failedFor : texts.failedUntil) : (held[heldBy] ?? text)}
      </strong>
      <dl class="facts">
        {since !== undefined && (
          <Fact name={texts.since}>
            <InstantAndSpan at={since} />
          </Fact>
        )}
        {until !== undefined && !until.startsWith("9999") && (
          <Fact name={texts.until}>
            <InstantAndSpan at={until} />
          </Fact>
        )}
        {behindId !== undefined && (
          <Fact name="">
            <a href={hrefOf(source, "messages", { id: behindId })}>{texts.behind(behindId)}</a>
          </Fact>
        )}
        {relay !== undefined && <Fact name={texts.relay}>{relay}</Fact>}
      </dl>
      {message.failReason !== null && message.state !== "sent" && <pre class="reason-text">{message.failReason}</pre>}
      {!SAID.includes(heldBy) && (
        <p class="quiet" lang="en">
          {text}
        </p>
      )}
    </section>
  );
}

function Fact({ children, name }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const QUEUE_MS = 15_000;

function KeyQueue({ message: { id, orderingKey }, source }: { readonly message: Message; readonly source: string }) {
  if (typeof orderingKey !== "string") return null;
  return <Queue {...{ id, source, orderingKey }} />;
}

function Queue({
  id,
  orderingKey,
  source,
}: {
  readonly id: string;
  readonly source: string;
  readonly orderingKey: string;
}) {
  const load = async (signal: AbortSignal) => (await call("keyQueue", { source, id, signal })).answer;
  const { answer } = usePolled(`queue ${source} ${id}`, load, { everyMs: QUEUE_MS });
  if (answer === undefined || answer.items.length === 0) return null;
  return (
    <section>
      <h2>{words.value.message.queue(orderingKey)}</h2>
      <MessageTable source={source} messages={answer.items} marked={id} />
    </section>
  );
}

function Changes({ changes }: { readonly changes: Detail["changes"] }) {
  const { audit, message: texts } = words.value;
  return (
    <section>
      <h2>{texts.changes}</h2>
      {changes.length === 0 ? (
        <p class="quiet">{texts.noChanges}</p>
      ) : (
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">{audit.columns.at}</th>
              <th scope="col">{audit.columns.author}</th>
              <th scope="col">{audit.columns.action}</th>
              <th scope="col">{audit.columns.reason}</th>
            </tr>
          </thead>
          <tbody>
            {changes.map(({ action, at, author, reason }) => (
              <tr key={`${at} ${action}`}>
                <th scope="row">
                  <Instant at={at} />
                </th>
                <td data-label={audit.columns.author}>{author}</td>
                <td data-label={audit.columns.action} class="mono">
                  {action}
                </td>
                <td data-label={audit.columns.reason} class="wide">
                  {reason}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

const SHOWN_FIELDS = [
  ...(["id", "type", "key", "topic", "orderingKey", "contentType", "retryCount", "deliveryCount"] as const),
  ...(["messageId", "lockVersion", "rawState", "createdBy", "updatedBy"] as const),
];

function Fields({ message }: { readonly message: Message }) {
  const { message: texts } = words.value;
  return (
    <section>
      <h2>{texts.fields}</h2>
      <dl class="fields-list">
        {SHOWN_FIELDS.filter((name) => message[name] !== undefined && message[name] !== null).map((name) => {
          const value = message[name];
          return (
            <div key={name}>
              <dt>{texts.names[name]}</dt>
              <dd class="mono">{typeof value === "number" ? formatNumber(value) : value}</dd>
            </div>
          );
        })}
      </dl>
    </section>
  );
}
