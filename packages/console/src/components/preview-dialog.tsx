import type { AnswerOf, BodyOf } from "rowpost-server/api";
import { go, hrefOf } from "../address.ts";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { fieldOf } from "../form.ts";
import { formatCount } from "../format.ts";
import { words } from "../language/language.ts";
import { ReasonDialog } from "./reason-dialog.tsx";
import { WaitingDialog } from "./waiting-dialog.tsx";

const SHOWN = 5;

interface PreviewProps {
  readonly source: string;
  readonly what: BodyOf<"preview">;
  readonly close: () => void;
}

export function PreviewDialog({ close, source, what }: PreviewProps) {
  const load = async (signal: AbortSignal) => (await call("preview", { source, body: what, signal })).answer;
  const { answer, problem } = usePolled(JSON.stringify(what), load, { everyMs: 0 });
  const { bulk: texts } = words.value;
  const title = texts.kinds[what.kind];
  if (answer !== undefined) return <Decide answer={answer} source={source} title={title} close={close} />;
  return <WaitingDialog {...{ close, problem, title }} />;
}

function Decide({
  answer: { operation, samples },
  close,
  source,
  title,
}: Pick<PreviewProps, "close" | "source"> & { readonly answer: AnswerOf<"preview">; readonly title: string }) {
  const { bulk: texts } = words.value;
  const { id, total } = operation;
  async function start(form: FormData): Promise<void> {
    await call("startOperation", { source, body: { preview: id, reason: fieldOf(form, "reason") } });
    go(hrefOf(source, "operations"));
  }
  return (
    <ReasonDialog
      title={title}
      about={texts.means(formatCount(total))}
      verb={texts.start}
      done={texts.started}
      act={start}
      close={close}
    >
      <ul class="samples">
        {samples.slice(0, SHOWN).map((message) => (
          <li key={message.id}>
            <span class="num">{message.id}</span> {message.type} <span class="mono">{message.key}</span>
          </li>
        ))}
        {total.value > SHOWN && <li class="quiet">…</li>}
      </ul>
    </ReasonDialog>
  );
}
