import { useSignal } from "@preact/signals";
import { call } from "../api/client.ts";
import { ReasonDialog, RouteButton } from "../components/reason-dialog.tsx";
import { fieldOf } from "../form.ts";
import { queueWords } from "../language/queue.ts";
import type { Group } from "./group-state.tsx";
import { RewindDialog } from "./rewind-dialog.tsx";

interface GroupButtonsProps {
  readonly source: string;
  readonly topic: string;
  readonly group: Group;
  readonly again: () => void;
  /** The last rewind can be undone. */
  readonly canUndo?: boolean;
}

type Opened = "pause" | "resume" | "rewind" | "undo" | undefined;

export function GroupButtons({ again, canUndo = false, group: { group, paused }, source, topic }: GroupButtonsProps) {
  const opened = useSignal<Opened>(undefined);
  const { about, actions, done } = queueWords.value;
  const move = paused === undefined ? "pause" : "resume";
  const asked = opened.value;
  function close(): void {
    opened.value = undefined;
  }
  function open(what: Opened): () => void {
    return () => {
      opened.value = what;
    };
  }
  return (
    <>
      <RouteButton
        route={move === "pause" ? "queuePause" : "queueResume"}
        label={actions[move]}
        of={group}
        open={open(move)}
      />
      <RouteButton route="queueRewind" label={actions.rewind} of={group} open={open("rewind")} />
      {canUndo && <RouteButton route="queueRewind" label={actions.undo} of={group} open={open("undo")} />}
      {(asked === "pause" || asked === "resume") && (
        <ReasonDialog
          title={`${actions[asked]} · ${group}`}
          about={about[asked]}
          verb={actions[asked].replace("…", "")}
          done={done[asked]}
          act={async (form) => {
            const route = asked === "pause" ? "queuePause" : "queueResume";
            await call(route, { source, topic, group, body: { reason: fieldOf(form, "reason") } });
            again();
          }}
          close={close}
        />
      )}
      {(asked === "rewind" || asked === "undo") && (
        <RewindDialog {...{ again, close, group, source, topic }} isUndo={asked === "undo"} />
      )}
    </>
  );
}
