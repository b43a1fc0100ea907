import type { AnswerOf } from "rowpost-server/api";
import { hrefOf } from "../address.ts";
import { formatNumber, zoneOffset } from "../format.ts";
import { words } from "../language/language.ts";
import { Instant } from "./instant.tsx";
import { StateMark } from "./state.tsx";

export type Message = AnswerOf<"messages">["items"][number];

/** Messages in rows, on a phone in cards. `marked`: the message of the page. */
export function MessageTable({
  marked,
  messages,
  source,
}: {
  readonly source: string;
  readonly messages: readonly Message[];
  readonly marked?: string;
}) {
  const { columns } = words.value.messages;
  return (
    <table class="rows messages" data-rows>
      <thead>
        <tr>
          <th scope="col" class="right">
            {columns.id}
          </th>
          <th scope="col">{columns.state}</th>
          <th scope="col">{columns.type}</th>
          <th scope="col">{columns.key}</th>
          <th scope="col">{columns.topic}</th>
          <th scope="col" class="right">
            {columns.tries}
          </th>
          <th scope="col">{columns.next}</th>
          <th scope="col">
            {columns.created} <span class="quiet">{zoneOffset()}</span>
          </th>
          <th scope="col">{columns.reason}</th>
        </tr>
      </thead>
      <tbody>
        {messages.map((message) => (
          <Row key={`${message.id} ${message.archived}`} {...{ message, source }} isMarked={message.id === marked} />
        ))}
      </tbody>
    </table>
  );
}

function Row({
  isMarked,
  message,
  source,
}: {
  readonly message: Message;
  readonly source: string;
  readonly isMarked: boolean;
}) {
  const { messages: texts } = words.value;
  const { columns } = texts;
  const { archived, failReason, gmtCreate, id, key, nextRetryAt, retryCount, state, topic, type } = message;
  return (
    <tr class={isMarked ? "marked" : undefined}>
      <th scope="row" class="right" data-label={columns.id}>
        <a data-row class="num" href={hrefOf(source, "messages", { id })}>
          {id}
        </a>
      </th>
      <td data-label={columns.state}>
        <StateMark state={state} />
        {archived && <span class="tag">{texts.archived}</span>}
      </td>
      <td data-label={columns.type}>
        <span class="cut">{type}</span>
      </td>
      <td data-label={columns.key}>
        <span class="cut mono">{key}</span>
      </td>
      <td data-label={columns.topic}>
        <span class="cut">{topic}</span>
      </td>
      <td class="right num" data-label={columns.tries}>
        {retryCount === 0 ? <span class="quiet">0</span> : formatNumber(retryCount)}
      </td>
      <td data-label={columns.next}>
        <Instant at={nextRetryAt} />
      </td>
      <td data-label={columns.created}>
        <Instant at={gmtCreate} />
      </td>
      <td data-label={columns.reason} class="wide">
        <span class="cut" title={failReason ?? undefined}>
          {failReason ?? <span class="quiet">–</span>}
        </span>
      </td>
    </tr>
  );
}
