/** Holding a topic back, letting it go, and bringing forward what waits for its next attempt. */
import { useSignal } from "@preact/signals";
import { call } from "../api/client.ts";
import { fieldOf } from "../form.ts";
import { words } from "../language/language.ts";
import { EndsField, ReasonDialog, refusalOf, untilOf } from "./reason-dialog.tsx";

type Action = "suspendScope" | "resumeScope" | "resetBackoff";

interface TopicActionsProps {
  readonly source: string;
  readonly topic: string;
  readonly isSuspended: boolean;
  readonly again: () => void;
}

export function TopicActions({ again, isSuspended, source, topic }: TopicActionsProps) {
  const opened = useSignal<Action | undefined>(undefined);
  const { topics: texts } = words.value;
  const actions: readonly Action[] = [isSuspended ? "resumeScope" : "suspendScope", "resetBackoff"];
  const action = opened.value;
  async function act(form: FormData): Promise<void> {
    const reason = fieldOf(form, "reason");
    const rule = { scope: "topic", value: topic, reason } as const;
    if (action === "suspendScope") await call("suspendScope", { source, body: { ...rule, ...untilOf(form) } });
    if (action === "resumeScope") await call("resumeScope", { source, body: rule });
    if (action === "resetBackoff") await call("resetBackoff", { source, body: { topic, reason } });
    again();
  }
  return (
    <>
      {actions.map((name) => {
        const refusal = refusalOf(name, "operator");
        return (
          <button
            key={name}
            type="button"
            disabled={refusal !== undefined}
            title={refusal}
            aria-label={`${texts.actions[name]}: ${topic}`}
            onClick={() => {
              opened.value = name;
            }}
          >
            {texts.actions[name]}
          </button>
        );
      })}
      {action !== undefined && (
        <ReasonDialog
          title={`${texts.actions[action]} · ${topic}`}
          about={texts.about[action]}
          verb={texts.actions[action]}
          done={texts.done[action]}
          act={act}
          close={() => {
            opened.value = undefined;
          }}
        >
          {action === "suspendScope" && <EndsField />}
        </ReasonDialog>
      )}
    </>
  );
}
