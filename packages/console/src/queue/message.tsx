import type { AnswerOf } from "rowpost-server/api";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { may } from "../api/session.ts";
import { CopyButton } from "../components/copy.tsx";
import { Instant, InstantAndSpan } from "../components/instant.tsx";
import { BodyText, useAsked } from "../components/message-body.tsx";
import { Loaded, ProblemBox } from "../components/problem.tsx";
import { TableHead } from "../components/table-head.tsx";
import { formatNumber } from "../format.ts";
import { words } from "../language/language.ts";
import { queueWords } from "../language/queue.ts";
import { Crumbs } from "./crumbs.tsx";
import { queueHref } from "./places.ts";
import { producerText } from "./search.tsx";

interface MessageProps {
  readonly source: string;
  readonly topic: string;
  readonly id: string;
}

type Detail = AnswerOf<"queueMessage">;

const POLL_MS = 5_000;

export function MessageView({ id, source, topic }: MessageProps) {
  const load = async (signal: AbortSignal) => (await call("queueMessage", { source, topic, id, signal })).answer;
  const polled = usePolled(`queue ${source} ${topic} ${id}`, load, { everyMs: POLL_MS, isPage: true });
  return (
    <>
      <Crumbs source={source} topic={topic} />
      {polled.answer === undefined && <h1 tabIndex={-1}>{id}</h1>}
      <Loaded polled={polled}>
        {(detail) => (
          <>
            <Head message={detail.message} />
            <Groups groups={detail.groups} {...{ source, topic }} />
            <Attempts attempts={detail.attempts} />
            <Body {...{ id, source, topic }} />
          </>
        )}
      </Loaded>
    </>
  );
}

function Head({ message }: { readonly message: Detail["message"] }) {
  const { find, message: texts } = queueWords.value;
  const { contentType, deliverAt, id, key, orderingKey, partition, producer, sentAt, type } = message;
  const facts: readonly (readonly [string, string | undefined])[] = [
    [texts.partition, String(partition)],
    [texts.orderingKey, orderingKey],
    [texts.contentType, contentType],
    [texts.producer, producerText(producer)],
  ];
  return (
    <header class="message-head">
      <h1 tabIndex={-1}>
        {type !== undefined && <span class="quiet">{type} </span>}
        <span class="mono">{key ?? id}</span>
      </h1>
      <p>
        <span>
          {find.id} <span class="num">{id}</span> <CopyButton text={id} />
        </span>
        <span>
          {find.sent} <InstantAndSpan at={sentAt} />
        </span>
        {deliverAt !== null && (
          <span>
            {texts.deliverAt} <InstantAndSpan at={deliverAt} />
          </span>
        )}
        {facts
          .filter(([, value]) => value !== undefined && value !== "")
          .map(([name, value]) => (
            <span key={name}>
              <span class="quiet">{name}</span> {value}
            </span>
          ))}
      </p>
    </header>
  );
}

const TAGS = {
  ...({ unread: "tag", waiting: "tag-held", dead: "tag-bad", consumed: "tag-good" } as const),
  ...({ skipped: "tag", discarded: "tag", passed: "tag" } as const),
};

function Groups({
  groups,
  source,
  topic,
}: {
  readonly groups: Detail["groups"];
  readonly source: string;
  readonly topic: string;
}) {
  const { message: texts } = queueWords.value;
  const { columns } = texts;
  return (
    <section>
      <h2>{texts.who}</h2>
      {groups.length === 0 ? (
        <p class="quiet">{texts.noGroups}</p>
      ) : (
        <table class="rows">
          <thead>
            <tr>
              {[columns.group, columns.state, columns.next, columns.error].map((title) => (
                <th key={title} scope="col">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {groups.map(({ failReason, group, nextAttemptAt, state }) => (
              <tr key={group}>
                <th scope="row">
                  <a href={queueHref(source, { topic, group })}>{group}</a>
                </th>
                <td data-label={columns.state}>
                  <span class={`tag ${TAGS[state]}`}>{texts.states[state]}</span>
                </td>
                <td data-label={columns.next}>
                  <Instant at={nextAttemptAt} />
                </td>
                <td data-label={columns.error} class="wide">
                  {failReason ?? <span class="quiet">–</span>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Attempts({ attempts }: { readonly attempts: Detail["attempts"] }) {
  const { message: texts } = queueWords.value;
  const { columns } = texts;
  return (
    <section>
      <h2>{texts.attempts}</h2>
      {attempts.length === 0 ? (
        <p class="quiet">{texts.none}</p>
      ) : (
        <table class="rows">
          <TableHead columns={columns} names={["at", "group", "round", "attempt", "result", "took", "from", "error"]} />
          <tbody>
            {attempts.map((each) => (
              <AttemptRow key={`${each.group} ${each.round} ${each.attempt} ${each.at}`} attempt={each} />
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

const RESULTS = ["consumed", "failed", "dead", "skipped", "discarded", "redelivered", "unknown"] as const;

function AttemptRow({ attempt: each }: { readonly attempt: Detail["attempts"][number] }) {
  const { message: texts } = queueWords.value;
  const { columns } = texts;
  const result = RESULTS.find((name) => name === each.result) ?? "unknown";
  const tag = result === "consumed" ? "tag-good" : result === "failed" || result === "dead" ? "tag-bad" : "";
  const address = each.port === undefined ? each.ip : `${each.ip ?? "?"}:${each.port}`;
  return (
    <tr>
      <th scope="row">
        <Instant at={each.at} />
      </th>
      <td data-label={columns.group}>{each.group}</td>
      <td data-label={columns.round} class="num">
        {each.round}
      </td>
      <td data-label={columns.attempt} class="num">
        {each.attempt <= 0 ? texts.byHand : each.attempt}
      </td>
      <td data-label={columns.result}>
        <span class={`tag ${tag}`}>{texts.results[result]}</span>
        {each.batch !== undefined && <div class="quiet">{texts.batch(formatNumber(each.batch))}</div>}
      </td>
      <td data-label={columns.took} class="num">
        {formatNumber(each.durationMs)} {words.value.common.ms}
      </td>
      <td data-label={columns.from}>
        <span class="mono">{address}</span> <span class="quiet cut">{each.instance}</span>
      </td>
      <td data-label={columns.error} class="wide">
        {each.error ?? <span class="quiet">–</span>}
      </td>
    </tr>
  );
}

function Body(given: MessageProps) {
  const { answer: shown, ask, problem } = useAsked(async () => (await call("queueBody", given)).answer);
  const { message: texts, roles } = words.value;
  return (
    <section>
      <h2>{texts.body}</h2>
      {problem !== undefined && <ProblemBox problem={problem} />}
      {shown === undefined ? (
        <p>
          <button type="button" disabled={!may("queueBody")} onClick={ask}>
            {texts.showBody}
          </button>{" "}
          <span class="quiet">{may("queueBody") ? texts.bodyNote : texts.needs(roles.operator)}</span>
        </p>
      ) : (
        <>
          {shown.problem !== undefined && <p class="wrong">{shown.problem}</p>}
          <BodyText body={{ ...shown, headers: shown.headers === undefined ? null : JSON.stringify(shown.headers) }} />
        </>
      )}
    </section>
  );
}
