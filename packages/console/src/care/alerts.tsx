import { useSignal } from "@preact/signals";
import type { AnswerOf } from "rowpost-server/api";
import { hrefOf } from "../address.ts";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { Command } from "../components/copy.tsx";
import { Instant } from "../components/instant.tsx";
import { RouteButton } from "../components/reason-dialog.tsx";
import { TableHead } from "../components/table-head.tsx";
import { ToldPage } from "../components/told-page.tsx";
import { formatDuration } from "../format.ts";
import { careWords } from "../language/care.ts";
import type { PageProps } from "../pages/page.ts";
import { queueHref } from "../queue/places.ts";
import { language } from "../settings.ts";
import { Channels } from "./alert-channels.tsx";
import { ruleName, SilenceDialog, Silences } from "./silences.tsx";

type List = AnswerOf<"alerts">;
type Alert = List["items"][number];

const POLL_MS = 10_000;
const TAGS = { critical: "tag-bad", warning: "tag-held", info: "" } as const;

export function AlertsPage({ source }: PageProps) {
  const load = async (signal: AbortSignal) => (await call("alerts", { source, signal })).answer;
  // The server's texts depend on the language of the page.
  const polled = usePolled(`alerts ${source} ${language.value}`, load, { everyMs: POLL_MS, isPage: true });
  const { alerts: texts } = careWords.value;
  return (
    <ToldPage texts={texts} polled={polled}>
      {(list) => (
        <>
          {!list.isEvaluated && <Nobody ageMs={list.ageMs} />}
          <Open list={list} source={source} again={polled.again} />
          <Silences silences={list.silences} rules={list.rules} source={source} again={polled.again} />
          <Channels channels={list.channels} source={source} />
          <Past list={list} />
        </>
      )}
    </ToldPage>
  );
}

function Nobody({ ageMs }: { readonly ageMs: number | undefined }) {
  const { alerts: texts } = careWords.value;
  return (
    <div class="empty">
      <strong>{texts.nobody}</strong>
      <p>{ageMs === undefined ? texts.never : texts.stale(formatDuration(ageMs))}</p>
      <Command text="rowpost relay --alerts alerts.json" />
    </div>
  );
}

interface OpenProps {
  readonly list: List;
  readonly source: string;
  readonly again: () => void;
}

function Open({ again, list: { isEvaluated, items, rules }, source }: OpenProps) {
  const { alerts: texts } = careWords.value;
  if (items.length === 0) return isEvaluated ? <p class="all-well">{texts.well}</p> : null;
  return (
    <ul class="findings">
      {items.map((alert) => (
        <Item key={`${alert.rule} ${alert.subject}`} alert={alert} rules={rules} source={source} again={again} />
      ))}
    </ul>
  );
}

interface ItemProps extends Omit<OpenProps, "list"> {
  readonly alert: Alert;
  readonly rules: List["rules"];
}

function Item({ again, alert, rules, source }: ItemProps) {
  const isOpen = useSignal(false);
  const { alerts: texts } = careWords.value;
  const { command, forMs, peak, rule, severity, since, title, why } = alert;
  return (
    <li class={severity === "critical" ? "grave" : undefined}>
      <h2>
        <span class={`tag ${TAGS[severity]}`}>{texts.severities[severity]}</span>
        <span>{title}</span>
        {alert.phase === "waiting" && <span class="tag">{texts.waiting}</span>}
        {alert.silence !== undefined && <span class="tag">{texts.silenced}</span>}
        <span class="aside mono">{rule}</span>
      </h2>
      <dl>
        <dt>{texts.since}</dt>
        <dd>
          <Instant at={since} /> <span class="quiet">({formatDuration(forMs)})</span>
        </dd>
        <dt>{texts.worst}</dt>
        <dd>{peak}</dd>
        <dt>{texts.why}</dt>
        <dd>{why}</dd>
        <dt>{texts.first}</dt>
        <dd>{/^rowpost [^,]+$/.test(command) ? <Command text={command} /> : command}</dd>
      </dl>
      <div class="actions">
        <a href={placeOf(alert, source)}>{texts.look}</a>
        <RouteButton
          route="addSilence"
          label={texts.silence}
          of={title}
          open={() => {
            isOpen.value = true;
          }}
        />
      </div>
      {isOpen.value && (
        <SilenceDialog
          source={source}
          rules={rules}
          about={alert}
          again={again}
          close={() => {
            isOpen.value = false;
          }}
        />
      )}
    </li>
  );
}

/** A topic, or `topic/group`; topic names have no slash. */
function queuePlace(subject: string, source: string): string {
  const [topic = "", ...group] = subject.split("/");
  return queueHref(source, { topic, group: group.length === 0 ? undefined : group.join("/") });
}

function placeOf({ messageId, rule, subject }: Alert, source: string): string {
  const topic = subject;
  switch (rule) {
    case "failed":
      return hrefOf(source, "messages", { query: { state: "failed", topic } });
    case "sending-long":
      return hrefOf(source, "messages", { query: { state: "sending", topic } });
    case "oldest-due":
      return hrefOf(source, "messages", messageId === undefined ? {} : { id: messageId });
    case "unconfirmed":
      return hrefOf(source, "unconfirmed");
    case "topic-resting":
      return hrefOf(source, "topics");
    case "suspension":
      return hrefOf(source, "overview");
    case "queue-lag":
    case "queue-paused":
    case "queue-dead":
    case "queue-tables":
      return queuePlace(subject, source);
    case "doctor":
    case "database":
    case "schema":
      return hrefOf(source, "doctor");
    default:
      return hrefOf(source, "relays");
  }
}

function Past({ list: { past, rules } }: Pick<OpenProps, "list">) {
  const { alerts: texts } = careWords.value;
  if (past.length === 0) return null;
  return (
    <section>
      <h2>{texts.past}</h2>
      <table class="rows">
        <TableHead columns={texts.pastColumns} names={["rule", "subject", "severity", "since", "lasted"]} />
        <tbody>
          {past.map(({ forMs, rule, severity, since, subject, until }) => (
            <tr key={`${rule} ${subject} ${until}`}>
              <th scope="row">{ruleName(rules, rule)}</th>
              <td data-label={texts.pastColumns.subject}>
                {subject === "" ? <span class="quiet">–</span> : <span class="cut">{subject}</span>}
              </td>
              <td data-label={texts.pastColumns.severity}>
                <span class={`tag ${TAGS[severity]}`}>{texts.severities[severity]}</span>
              </td>
              <td data-label={texts.pastColumns.since}>
                <Instant at={since} />
              </td>
              <td data-label={texts.pastColumns.lasted}>{formatDuration(forMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
