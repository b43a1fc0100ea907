import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Role } from "rowpost-server/api";
import { announce } from "../announce.ts";
import { type ApiProblem, call, type Reply } from "../api/client.ts";
import { now, problemOf } from "../api/polling.ts";
import { may, meta } from "../api/session.ts";
import { fieldOf } from "../form.ts";
import { formatNumber } from "../format.ts";
import { words } from "../language/language.ts";
import { CopyDialog } from "./copy-dialog.tsx";
import { Instant } from "./instant.tsx";
import type { Message } from "./message-table.tsx";
import { Modal } from "./modal.tsx";
import { ProblemBox } from "./problem.tsx";
import { EndsField, untilOf } from "./reason-dialog.tsx";
import { StateMark } from "./state.tsx";

type Action = "retry" | "retryNow" | "resend" | "suspend" | "resume" | "confirm" | "archive";
/** Actions with a button; the copy has its own dialog. */
type Offered = Action | "copy";
type Route = Exclude<Offered, "retryNow">;

const ROLES: Readonly<Record<Offered, Role>> = {
  ...({ retry: "operator", retryNow: "operator", suspend: "operator", resume: "operator" } as const),
  ...({ confirm: "operator", resend: "admin", archive: "admin", copy: "admin" } as const),
};

function routeOf(action: Offered): Route {
  return action === "retryNow" ? "retry" : action;
}

function actionsOf({ archived, nextRetryAt, state }: Message): readonly Action[] {
  if (archived) return [];
  switch (state) {
    case "failed":
      return ["retry", "suspend", "archive"];
    case "pending":
      return nextRetryAt !== null && Date.parse(nextRetryAt) > now.value ? ["retryNow", "suspend"] : ["suspend"];
    case "suspended":
      return ["resume"];
    case "sent":
      return ["confirm", "resend", "archive"];
    case "consumed":
      return ["archive"];
    default:
      return [];
  }
}

interface ActionsProps {
  readonly message: Message;
  readonly source: string;
  readonly etag: string | undefined;
  /** The data is outdated, so actions are disabled. */
  readonly isStale: boolean;
  readonly again: () => void;
}

/** Disabled buttons say why. */
export function Actions(props: ActionsProps) {
  const opened = useSignal<Offered | undefined>(undefined);
  const { message: texts, roles } = words.value;
  const offered: readonly Offered[] = [...actionsOf(props.message), "copy"];
  const refusal = (action: Offered): string | undefined => {
    if (props.isStale) return texts.isAway;
    if (meta.value?.readOnly === true) return texts.readOnly;
    return may(routeOf(action)) ? undefined : texts.needs(roles[ROLES[action]]);
  };
  const told = [...new Set(offered.map(refusal).filter((why) => why !== undefined))];
  const close = (): void => {
    opened.value = undefined;
  };
  return (
    <div class="actions">
      {offered.map((action, at) => (
        <button
          key={action}
          type="button"
          class={at === 0 && action !== "copy" ? "main" : undefined}
          disabled={refusal(action) !== undefined}
          title={refusal(action)}
          onClick={() => {
            opened.value = action;
          }}
        >
          {action === "copy" ? texts.copying.open : texts.actions[action]}
        </button>
      ))}
      {told.length > 0 && <span class="quiet">{told.join(" · ")}</span>}
      {opened.value === "copy" ? (
        <CopyDialog {...props} close={close} />
      ) : (
        opened.value !== undefined && <ActionDialog {...props} action={opened.value} close={close} />
      )}
    </div>
  );
}

function ActionDialog(props: ActionsProps & { readonly action: Action; readonly close: () => void }) {
  const { action, again, close, message, source } = props;
  // The version that the user saw, not one polled meanwhile.
  const seen = useRef(props.etag);
  const problem = useSignal<ApiProblem | undefined>(undefined);
  const isBusy = useSignal(false);
  const { common, message: texts } = words.value;
  const current = problem.value === undefined ? undefined : currentOf(problem.value);
  const allowsStill = current !== undefined && actionsOf(current).includes(action);

  async function submit(event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): Promise<void> {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    const newer = current === undefined ? undefined : `"${current.lockVersion ?? current.state}"`;
    isBusy.value = true;
    try {
      await send(action, { id: message.id, source, ifMatch: newer ?? seen.current ?? "", given });
      announce(texts.done[action]);
      close();
    } catch (error) {
      problem.value = problemOf(error);
    } finally {
      isBusy.value = false;
      again();
    }
  }

  return (
    <Modal title={`${texts.actions[action]} · ${message.id}`} close={close}>
      <p>{texts.about[action]}</p>
      <form onSubmit={(event) => void submit(event)}>
        <label>
          {texts.reason}
          <textarea name="reason" rows={2} required maxLength={1_000} placeholder={texts.reasonHint} />
        </label>
        {action === "suspend" && <EndsField />}
        {problem.value !== undefined &&
          (current === undefined ? (
            <ProblemBox problem={problem.value} />
          ) : (
            <Changed current={current} isConflict={problem.value.code === "state-conflict"} />
          ))}
        <div class="dialog-end">
          <button type="button" onClick={close}>
            {current === undefined ? common.cancel : texts.showNow}
          </button>
          {(current === undefined || allowsStill) && (
            <button type="submit" class="main" disabled={isBusy.value}>
              {current === undefined ? texts.actions[action] : texts.useThis}
            </button>
          )}
        </div>
      </form>
    </Modal>
  );
}

interface Sent {
  readonly id: string;
  readonly source: string;
  readonly ifMatch: string;
  readonly given: FormData;
}

async function send(action: Action, { given, id, ifMatch, source }: Sent): Promise<Reply<Route>> {
  const reason = fieldOf(given, "reason");
  const about = { id, source, ifMatch };
  if (action === "retryNow") return await call("retry", { ...about, body: { reason, now: true } });
  if (action !== "suspend") return await call(action, { ...about, body: { reason } });
  return await call("suspend", { ...about, body: { reason, ...untilOf(given) } });
}

function currentOf({ code, more }: ApiProblem): Message | undefined {
  const { current } = more;
  if (code !== "precondition-failed" && code !== "state-conflict") return undefined;
  return typeof current === "object" && current !== null ? (current as Message) : undefined;
}

function Changed({ current, isConflict }: { readonly current: Message; readonly isConflict: boolean }) {
  const { message: texts, messages } = words.value;
  return (
    <div class="problem" role="alert">
      <strong>{isConflict ? texts.conflict : texts.changed}</strong>
      <p>{texts.changedText}</p>
      <dl class="facts">
        <div>
          <dt>{messages.columns.state}</dt>
          <dd>
            <StateMark state={current.state} />
          </dd>
        </div>
        <div>
          <dt>{messages.columns.tries}</dt>
          <dd>{formatNumber(current.retryCount)}</dd>
        </div>
        <div>
          <dt>{texts.events.modified}</dt>
          <dd>
            <Instant at={current.gmtModified} />
          </dd>
        </div>
      </dl>
    </div>
  );
}
