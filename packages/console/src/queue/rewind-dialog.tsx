/** Rewinds a group (回拨): target, preview, then execution exactly as previewed. */
import { useSignal } from "@preact/signals";
import type { AnswerOf } from "rowpost-server/api";
import { announce } from "../announce.ts";
import { type ApiProblem, call } from "../api/client.ts";
import { problemOf } from "../api/polling.ts";
import { Modal } from "../components/modal.tsx";
import { ProblemBox } from "../components/problem.tsx";
import { fieldOf } from "../form.ts";
import { formatNumber, zoneOffset } from "../format.ts";
import { words } from "../language/language.ts";
import { queueWords } from "../language/queue.ts";
import { instantAt, yesterdayNoon } from "../wall-clock.ts";
import { monthText } from "./search.tsx";

type Plan = AnswerOf<"queueRewindPlan">;

interface RewindProps {
  readonly source: string;
  readonly topic: string;
  readonly group: string;
  readonly isUndo: boolean;
  readonly again: () => void;
  readonly close: () => void;
}

const GOALS = ["time", "id", "back", "start", "end"] as const;
type Goal = (typeof GOALS)[number];

export function RewindDialog({ again, close, group, isUndo, source, topic }: RewindProps) {
  const plan = useSignal<(Plan & { readonly goal: string }) | undefined>(undefined);
  const problem = useSignal<ApiProblem | undefined>(undefined);
  const isBusy = useSignal(false);
  const { rewind: texts } = queueWords.value;
  const { common, message } = words.value;
  const about = { source, topic, group };

  async function attempt(work: () => Promise<void>): Promise<void> {
    isBusy.value = true;
    try {
      problem.value = undefined;
      await work();
    } catch (error) {
      problem.value = problemOf(error);
    } finally {
      isBusy.value = false;
    }
  }

  async function preview(form: FormData): Promise<void> {
    const goal = isUndo ? "undo" : goalOf(form);
    plan.value = { ...(await call("queueRewindPlan", { ...about, query: { to: goal } })).answer, goal };
  }

  /** Executes as previewed, or not at all. */
  async function rewind({ goal, partitions }: Plan & { readonly goal: string }, form: FormData): Promise<void> {
    const expected = partitions.map(({ from, partition }) => ({ from, partition }));
    const overDroppedMonths = form.get("over") === "on";
    const body = { to: goal, reason: fieldOf(form, "reason"), expected, overDroppedMonths };
    await call("queueRewind", { ...about, body });
    announce(isUndo ? texts.undone : texts.done);
    again();
    close();
  }

  function submit(event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): void {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const shown = plan.value;
    const isPreview = event.submitter?.getAttribute("value") === "preview";
    void attempt(() => (shown === undefined || isPreview ? preview(form) : rewind(shown, form)));
  }

  const shown = plan.value;
  const moves = shown !== undefined && shown.partitions.length > 0;
  return (
    <Modal title={`${isUndo ? texts.undoTitle : texts.title} · ${group}`} close={close}>
      <p>{isUndo ? texts.undoAbout : texts.about}</p>
      <form onSubmit={submit}>
        {!isUndo && (
          <GoalFields
            changed={() => {
              plan.value = undefined;
            }}
          />
        )}
        {shown !== undefined && <Shown plan={shown} />}
        {moves && (
          <label>
            {message.reason}
            <textarea name="reason" rows={2} required maxLength={255} placeholder={message.reasonHint} />
          </label>
        )}
        {problem.value !== undefined && <ProblemBox problem={problem.value} />}
        <div class="dialog-end">
          <button type="button" onClick={close}>
            {common.cancel}
          </button>
          <button
            type="submit"
            name="what"
            value="preview"
            formNoValidate={moves}
            class={moves ? undefined : "main"}
            disabled={isBusy.value}
          >
            {shown === undefined ? texts.preview : texts.again}
          </button>
          {moves && (
            <button type="submit" name="what" value="rewind" class="main" disabled={isBusy.value}>
              {isUndo ? texts.undo : texts.go}
            </button>
          )}
        </div>
      </form>
    </Modal>
  );
}

function goalOf(form: FormData): string {
  const goal = fieldOf(form, "goal");
  if (goal === "time") return `time:${instantAt(fieldOf(form, "time")) ?? ""}`;
  return goal === "id" || goal === "back" ? `${goal}:${fieldOf(form, goal)}` : goal;
}

/** Default target: noon of yesterday. */
function GoalFields({ changed }: { readonly changed: () => void }) {
  const goal = useSignal<Goal>("time");
  const { rewind: texts } = queueWords.value;
  return (
    <div class="goal" onInput={changed}>
      <label>
        {texts.goal}
        <select
          name="goal"
          onChange={({ currentTarget }) => {
            goal.value = GOALS.find((name) => name === currentTarget.value) ?? "time";
          }}
        >
          {GOALS.map((name) => (
            <option key={name} value={name}>
              {texts.goals[name]}
            </option>
          ))}
        </select>
      </label>
      {goal.value === "time" && (
        <label>
          {texts.time} ({zoneOffset()})
          <input name="time" type="datetime-local" required defaultValue={yesterdayNoon()} />
        </label>
      )}
      {goal.value === "id" && (
        <label>
          {texts.id}
          <input name="id" class="mono" required pattern="\d{1,19}" autocomplete="off" />
        </label>
      )}
      {goal.value === "back" && (
        <label>
          {texts.back}
          <input name="back" type="number" min={1} max={999_999_999} required defaultValue="100" />
        </label>
      )}
    </div>
  );
}

function Shown({ plan: { consumed, droppedMonths, messages, partitions } }: { readonly plan: Plan }) {
  const { rewind: texts } = queueWords.value;
  if (partitions.length === 0) return <p class="plan-told">{texts.nothing}</p>;
  const back = partitions.filter(({ from, to }) => BigInt(to) < BigInt(from)).length;
  const [count, done] = [formatNumber(messages), formatNumber(consumed)];
  const told =
    back === partitions.length
      ? texts.replayed(count, done)
      : back === 0
        ? texts.passed(count)
        : texts.both(count, done);
  return (
    <div role="status">
      <p class="plan-told">
        <strong>{told}</strong>
      </p>
      <Moves partitions={partitions} />
      {droppedMonths.length > 0 && (
        <>
          <p class="wrong">{texts.gone(droppedMonths.map(monthText).join(", "))}</p>
          <label class="check">
            <input name="over" type="checkbox" required />
            {texts.begin}
          </label>
        </>
      )}
    </div>
  );
}

function Moves({ partitions }: Pick<Plan, "partitions">) {
  const { columns } = queueWords.value.rewind;
  return (
    <table class="rows plan">
      <thead>
        <tr>
          <th scope="col" class="right">
            {columns.partition}
          </th>
          <th scope="col">
            {columns.from} → {columns.to}
          </th>
          <th scope="col" class="right">
            {columns.messages}
          </th>
          <th scope="col" class="right">
            {columns.consumed}
          </th>
        </tr>
      </thead>
      <tbody>
        {partitions.map((each) => (
          <tr key={each.partition}>
            <td class="right num" data-label={columns.partition}>
              {each.partition}
            </td>
            <td class="num moves" data-label={columns.to}>
              {each.from} → {each.to}
            </td>
            <td class="right num" data-label={columns.messages}>
              {formatNumber(each.messages)}
            </td>
            <td class="right num" data-label={columns.consumed}>
              {formatNumber(each.consumed)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
