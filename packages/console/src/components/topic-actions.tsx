import { useSignal } from "@preact/signals";
import { call } from "../api/client.ts";
import { fieldOf } from "../form.ts";
import { words } from "../language/language.ts";
import { EndsField, ReasonDialog, RouteButton, untilOf } from "./reason-dialog.tsx";

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
      {actions.map((name) => (
        <RouteButton
          key={name}
          route={name}
          label={texts.actions[name]}
          of={topic}
          open={() => {
            opened.value = name;
          }}
        />
      ))}
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
