import type { ApiProblem } from "../api/client.ts";
import { words } from "../language/language.ts";
import { Modal } from "./modal.tsx";
import { ProblemBox } from "./problem.tsx";

export function WaitingDialog({
  close,
  problem,
  title,
  waiting,
}: {
  readonly title: string;
  readonly close: () => void;
  readonly problem: ApiProblem | undefined;
  readonly waiting?: string;
}) {
  const { common } = words.value;
  return (
    <Modal title={title} close={close}>
      {problem === undefined ? <p class="loading">{waiting ?? common.loading}</p> : <ProblemBox problem={problem} />}
      <div class="dialog-end">
        <button type="button" onClick={close}>
          {common.cancel}
        </button>
      </div>
    </Modal>
  );
}
