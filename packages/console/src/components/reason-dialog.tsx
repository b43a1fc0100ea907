import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { Role, RouteName } from "rowpost-server/api";
import { announce } from "../announce.ts";
import type { ApiProblem } from "../api/client.ts";
import { problemOf } from "../api/polling.ts";
import { may, meta } from "../api/session.ts";
import { words } from "../language/language.ts";
import { Modal } from "./modal.tsx";
import { ProblemBox } from "./problem.tsx";

/** Undefined: allowed. */
function refusalOf(route: RouteName, role: Role): string | undefined {
  const { message: texts, roles } = words.value;
  if (meta.value?.readOnly === true) return texts.readOnly;
  return may(route) ? undefined : texts.needs(roles[role]);
}

/** A button for a route; if it is forbidden it says why. */
export function RouteButton({
  label,
  of,
  least = "operator",
  open,
  route,
}: {
  readonly route: RouteName;
  readonly label: string;
  /** The lowest role. */
  readonly least?: Role;
  /** Target, for screen readers. */
  readonly of?: string;
  readonly open: () => void;
}) {
  const refusal = refusalOf(route, least);
  return (
    <button
      type="button"
      disabled={refusal !== undefined}
      title={refusal}
      aria-label={of === undefined ? undefined : `${label}: ${of}`}
      onClick={open}
    >
      {label}
    </button>
  );
}

export function ReasonDialog({
  about,
  act,
  children,
  close,
  done,
  title,
  verb,
}: {
  readonly title: string;
  readonly about?: string;
  readonly verb: string;
  readonly done: string;
  readonly act: (form: FormData) => Promise<unknown>;
  readonly close: () => void;
  readonly children?: ComponentChildren;
}) {
  const problem = useSignal<ApiProblem | undefined>(undefined);
  const isBusy = useSignal(false);
  const { common, message: texts } = words.value;
  async function submit(event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): Promise<void> {
    event.preventDefault();
    isBusy.value = true;
    try {
      await act(new FormData(event.currentTarget));
      announce(done);
      close();
    } catch (error) {
      problem.value = problemOf(error);
    } finally {
      isBusy.value = false;
    }
  }
  return (
    <Modal title={title} close={close}>
      {about !== undefined && <p>{about}</p>}
      <form onSubmit={(event) => void submit(event)}>
        {children}
        <label>
          {texts.reason}
          <textarea name="reason" rows={2} required maxLength={1_000} placeholder={texts.reasonHint} />
        </label>
        {problem.value !== undefined && <ProblemBox problem={problem.value} />}
        <div class="dialog-end">
          <button type="button" onClick={close}>
            {common.cancel}
          </button>
          <button type="submit" class="main" disabled={isBusy.value}>
            {verb}
          </button>
        </div>
      </form>
    </Modal>
  );
}

const ENDS_MS = { none: undefined, hour: 3_600_000, day: 86_400_000, week: 604_800_000 } as const;
const ENDS = ["none", "hour", "day", "week"] as const;

export function EndsField() {
  const { message: texts } = words.value;
  return (
    <label>
      {texts.endsIn}
      <select name="ends">
        {ENDS.map((name) => (
          <option key={name} value={name}>
            {texts.ends[name]}
          </option>
        ))}
      </select>
    </label>
  );
}

/** What {@link EndsField} says, as a part of a request. */
export function untilOf(form: FormData): { readonly until?: string } {
  const ends = ENDS_MS[ENDS.find((name) => name === form.get("ends")) ?? "none"];
  return ends === undefined ? {} : { until: new Date(Date.now() + ends).toISOString() };
}
