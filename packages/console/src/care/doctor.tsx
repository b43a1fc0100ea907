import type { AnswerOf } from "rowpost-server/api";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { Command } from "../components/copy.tsx";
import { Loaded } from "../components/problem.tsx";
import { formatNumber } from "../format.ts";
import { careWords } from "../language/care.ts";
import type { PageProps } from "../pages/page.ts";
import { language } from "../settings.ts";

type Examination = AnswerOf<"doctor">;

const SEVERITIES = ["error", "warning", "note"] as const;
const TAGS = { error: "tag-bad", warning: "tag-held", note: "" } as const;

export function DoctorPage({ source }: PageProps) {
  const load = async (signal: AbortSignal) => (await call("doctor", { source, signal })).answer;
  // The server's texts depend on the language of the page.
  const polled = usePolled(`doctor ${source} ${language.value}`, load, { everyMs: 0, isPage: true });
  const { doctor: texts } = careWords.value;
  return (
    <>
      <h1 tabIndex={-1}>{texts.title}</h1>
      <p class="told">{texts.about}</p>
      <div class="actions">
        <button type="button" class="main" onClick={polled.again}>
          {texts.again}
        </button>
        <span class="quiet">{texts.broker}</span>
      </div>
      <Loaded polled={polled}>{(examination) => <Findings examination={examination} />}</Loaded>
    </>
  );
}

function Findings({ examination: { found, server, tookMs } }: { readonly examination: Examination }) {
  const { doctor: texts } = careWords.value;
  const counts = SEVERITIES.flatMap((severity) => {
    const count = found.filter((each) => each.severity === severity).length;
    return count === 0 ? [] : [texts.counts[severity](count)];
  });
  const place = server === undefined ? texts.unreached : texts.on(server, formatNumber(tookMs));
  return (
    <section aria-live="polite">
      <p class={found.length === 0 ? "all-well" : "told"}>
        <strong>{found.length === 0 ? texts.well : counts.join(" · ")}</strong> · {place}
      </p>
      <ul class="findings">
        {found.map((each, at) => (
          <li key={`${each.id} ${at}`} class={each.severity === "error" ? "grave" : undefined}>
            <h2>
              <span class={`tag ${TAGS[each.severity]}`}>{texts.severities[each.severity]}</span>
              <span>{each.what}</span>
              <span class="aside mono">{each.id}</span>
            </h2>
            <dl>
              <dt>{texts.why}</dt>
              <dd>{each.why}</dd>
              <dt>{texts.mend}</dt>
              <dd>
                {each.mend !== each.command && <p>{each.mend}</p>}
                {each.command !== undefined && <Command text={each.command} />}
              </dd>
            </dl>
          </li>
        ))}
      </ul>
    </section>
  );
}
