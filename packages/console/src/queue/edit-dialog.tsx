/** A changed copy of a dead letter, for its group only. */
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { ReasonDialog } from "../components/reason-dialog.tsx";
import { WaitingDialog } from "../components/waiting-dialog.tsx";
import { queueWords } from "../language/queue.ts";

interface EditProps {
  readonly source: string;
  readonly topic: string;
  readonly group: string;
  readonly id: string;
  readonly again: () => void;
  readonly close: () => void;
}

/** Reading the body is audited, as everywhere. */
export function EditDialog({ again, close, group, id, source, topic }: EditProps) {
  const load = async (signal: AbortSignal) => (await call("queueBody", { source, topic, id, signal })).answer;
  const { answer, problem } = usePolled(`edit ${source} ${topic} ${id}`, load, { everyMs: 0 });
  const { about, actions, dead: texts, done } = queueWords.value;
  const title = `${actions.edit} · ${id}`;
  if (answer === undefined || answer.truncated)
    return <WaitingDialog {...{ close, problem, title }} waiting={texts.loadBody} />;
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
          source,
          topic,
          group,
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
