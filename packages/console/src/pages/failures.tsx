import { useSignal } from "@preact/signals";
import type { AnswerOf } from "rowpost-server/api";
import { hrefOf } from "../address.ts";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { Instant } from "../components/instant.tsx";
import { PreviewDialog } from "../components/preview-dialog.tsx";
import { Loaded } from "../components/problem.tsx";
import { RouteButton } from "../components/reason-dialog.tsx";
import { formatCount, formatNumber } from "../format.ts";
import { words } from "../language/language.ts";
import type { PageProps } from "./page.ts";

type Group = AnswerOf<"failures">["items"][number];

const POLL_MS = 15_000;

export function FailuresPage({ source }: PageProps) {
  const load = async (signal: AbortSignal) => (await call("failures", { source, signal })).answer;
  const polled = usePolled(`failures ${source}`, load, { everyMs: POLL_MS, isPage: true });
  const { failures: texts } = words.value;
  const { columns } = texts;
  return (
    <>
      <h1 tabIndex={-1}>{texts.title}</h1>
      <Loaded polled={polled}>
        {({ items, looked }) =>
          items.length === 0 ? (
            <p class="empty">{texts.none}</p>
          ) : (
            <>
              <p class="told">{texts.looked(formatCount(looked))}</p>
              <table class="rows" data-rows>
                <thead>
                  <tr>
                    <th scope="col" class="right">
                      {columns.count}
                    </th>
                    <th scope="col">{columns.cause}</th>
                    <th scope="col">{columns.topic}</th>
                    <th scope="col">{columns.type}</th>
                    <th scope="col">{columns.first}</th>
                    <th scope="col">{columns.last}</th>
                    <th scope="col">{texts.example}</th>
                    <th scope="col">{columns.actions}</th>
                  </tr>
                </thead>
                <tbody>
                  {items.map((group) => (
                    <GroupRow key={group.fingerprint} group={group} source={source} />
                  ))}
                </tbody>
              </table>
            </>
          )
        }
      </Loaded>
    </>
  );
}

function GroupRow({ group, source }: { readonly group: Group; readonly source: string }) {
  const { failures: texts } = words.value;
  const { columns } = texts;
  const { code, count, example, firstAt, lastAt, pattern, topic, type } = group;
  const query = { topic, type, state: "failed", reason: searchedWords(group) };
  return (
    <tr>
      <td class="right num count-failed" data-label={columns.count}>
        {formatNumber(count)}
      </td>
      <th scope="row" class="wide" data-label={columns.cause}>
        <a data-row class="cut" href={hrefOf(source, "messages", { query })} title={example.reason}>
          {code !== "" && <span class="mono">{code} </span>}
          <span class="cause">{pattern || (code === "" ? texts.noReason : "")}</span>
        </a>
      </th>
      <td data-label={columns.topic}>
        <span class="cut">{topic}</span>
      </td>
      <td data-label={columns.type}>
        <span class="cut">{type}</span>
      </td>
      <td data-label={columns.first}>
        <Instant at={firstAt} />
      </td>
      <td data-label={columns.last}>
        <Instant at={lastAt} />
      </td>
      <td data-label={texts.example}>
        <a class="num" href={hrefOf(source, "messages", { id: example.id })}>
          {example.id}
        </a>
      </td>
      <td data-label={columns.actions}>
        <RetryAll group={group} source={source} />
      </td>
    </tr>
  );
}

/** All messages of this cause by id, since no filter expresses a pattern. */
function RetryAll({ group: { fingerprint, pattern }, source }: { readonly group: Group; readonly source: string }) {
  const isOpen = useSignal(false);
  const { failures: texts } = words.value;
  return (
    <>
      <RouteButton
        route="preview"
        label={texts.retryAll}
        of={pattern}
        open={() => {
          isOpen.value = true;
        }}
      />
      {isOpen.value && (
        <PreviewDialog
          source={source}
          what={{ kind: "retry", fingerprint }}
          close={() => {
            isOpen.value = false;
          }}
        />
      )}
    </>
  );
}

/** The longest part of the pattern that occurs literally in every reason, else the code. */
function searchedWords({ code, example, pattern }: Group): string {
  const parts = pattern.split("#").map((part) => part.trim());
  const [longest = ""] = parts.sort((left, right) => right.length - left.length);
  return longest.length > code.length && example.reason.includes(longest) ? longest.slice(0, 200) : code;
}
