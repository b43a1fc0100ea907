/** A changed copy of a dead letter, for its group alone. */
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { Modal } from "../components/modal.tsx";
import { ProblemBox } from "../components/problem.tsx";
import { ReasonDialog } from "../components/reason-dialog.tsx";
import { words } from "../language/language.ts";
import { queueWords } from "../language/queue.ts";

interface EditProps {
  readonly source: string;
  readonly topic: string;
  readonly group: string;
  readonly id: string;
  readonly again: () => void;
  readonly close: () => void;
}

/** The look at the body is written into the audit, as everywhere. */
export function EditDialog({ again, close, group, id, source, topic }: EditProps) {
  const load = async (signal: AbortSignal) => (await call("queueBody", { source, topic, id, signal })).answer;
  const { answer, problem } = usePolled(`edit ${source} ${topic} ${id}`, load, { everyMs: 0 });
  const { about, actions, dead: texts, done } = queueWords.value;
  const title = `${actions.edit} · ${id}`;
  if (answer === undefined || answer.truncated)
    return (
      <Modal title={title} close={close}>
        {problem === undefined ? <p class="loading">{texts.loadBody}</p> : <ProblemBox problem={problem} />}
        <div class="dialog-end">
          <button type="button" onClick={close}>
            {words.value.common.cancel}
          </button>
        </div>
      </Modal>
    );
  return (
    <ReasonDialog
      title={title}
      about={about.edit}
      verb={actions.edit.replace("…", "")}
      done={done.edit}
      act={async (form) => {
        const text = (name: string): string => {
          const value = form.get(name);
          return typeof value === "string" ? value : "";
        };
        await call("queueEdit", {
          ...{ source, topic, group },
          body: { id, body: text("body"), reason: text("reason").trim() },
        });
        again();
      }}
      close={close}
    >
      <label>
        {texts.body}
        <textarea name="body" class="mono" rows={8} required defaultValue={answer.body} spellcheck={false} />
      </label>
    </ReasonDialog>
  );
}
