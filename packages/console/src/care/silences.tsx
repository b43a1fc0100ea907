import { useSignal } from "@preact/signals";
import type { AnswerOf } from "rowpost-server/api";
import { call } from "../api/client.ts";
import { Instant, InstantAndSpan } from "../components/instant.tsx";
import { ReasonDialog, RouteButton } from "../components/reason-dialog.tsx";
import { TableHead } from "../components/table-head.tsx";
import { fieldOf } from "../form.ts";
import { careWords } from "../language/care.ts";

type List = AnswerOf<"alerts">;
type Silence = List["silences"][number];

const HOURS = ["1", "4", "24", "168"] as const;
const HOUR_MS = 3_600_000;

interface Shared {
  readonly source: string;
  readonly again: () => void;
  readonly rules: List["rules"];
}

/** In the language of the page; a rule of a later version has no name. */
export function ruleName(rules: List["rules"], rule: string): string {
  return rules.find((each) => each.rule === rule)?.name ?? rule;
}

export function Silences({ silences, ...shared }: Shared & { readonly silences: readonly Silence[] }) {
  const isOpen = useSignal(false);
  const { alerts: texts } = careWords.value;
  const active = silences.filter((silence) => silence.active);
  const over = silences.filter((silence) => !silence.active);
  return (
    <section>
      <h2>{texts.silences}</h2>
      {active.length === 0 ? <p class="quiet">{texts.noSilences}</p> : <SilenceTable silences={active} {...shared} />}
      <div class="actions">
        <RouteButton
          route="addSilence"
          label={texts.addSilence}
          open={() => {
            isOpen.value = true;
          }}
        />
      </div>
      {over.length > 0 && (
        <details>
          <summary>{texts.over(over.length)}</summary>
          <SilenceTable silences={over} {...shared} />
        </details>
      )}
      {isOpen.value && (
        <SilenceDialog
          {...shared}
          close={() => {
            isOpen.value = false;
          }}
        />
      )}
    </section>
  );
}

function SilenceTable({ silences, ...shared }: Shared & { readonly silences: readonly Silence[] }) {
  const { alerts: texts } = careWords.value;
  return (
    <table class="rows">
      <TableHead columns={texts.silenceColumns} names={["what", "ends", "author", "reason", "actions"]} />
      <tbody>
        {silences.map((silence) => (
          <SilenceRow key={silence.id} silence={silence} {...shared} />
        ))}
      </tbody>
    </table>
  );
}

function SilenceRow({ again, rules, silence, source }: Shared & { readonly silence: Silence }) {
  const isOpen = useSignal(false);
  const { alerts: texts } = careWords.value;
  const { silenceColumns: columns } = texts;
  const { active, author, endsAt, id, reason, rule, subject } = silence;
  const what = [rule === undefined ? texts.everyRule : ruleName(rules, rule), subject].filter(Boolean);
  return (
    <tr>
      <th scope="row">
        <span class="cut">{what.join(" · ")}</span>
      </th>
      <td data-label={columns.ends}>{active ? <InstantAndSpan at={endsAt} /> : <Instant at={endsAt} />}</td>
      <td data-label={columns.author}>{author}</td>
      <td data-label={columns.reason}>{reason}</td>
      <td data-label={columns.actions}>
        {active && (
          <RouteButton
            route="endSilence"
            label={texts.end}
            of={what.join(" ")}
            open={() => {
              isOpen.value = true;
            }}
          />
        )}
        {isOpen.value && (
          <ReasonDialog
            title={`${texts.end} · ${what.join(" · ")}`}
            about={texts.aboutEnd}
            verb={texts.end}
            done={texts.ended}
            act={async (form) => {
              await call("endSilence", { source, silence: id, body: { reason: fieldOf(form, "reason") } });
              again();
            }}
            close={() => {
              isOpen.value = false;
            }}
          />
        )}
      </td>
    </tr>
  );
}

interface SilenceDialogProps extends Shared {
  /** Preset alert; otherwise anything can be chosen. */
  readonly about?: { readonly rule: string; readonly subject: string };
  readonly close: () => void;
}

export function SilenceDialog({ about, again, close, rules, source }: SilenceDialogProps) {
  const { alerts: texts } = careWords.value;
  async function act(form: FormData): Promise<void> {
    const chosen = rules.find(({ rule }) => rule === form.get("rule"));
    const subject = fieldOf(form, "subject");
    const forMs = Number(fieldOf(form, "hours")) * HOUR_MS;
    await call("addSilence", {
      source,
      body: {
        reason: fieldOf(form, "reason"),
        forMs,
        ...(chosen === undefined ? {} : { rule: chosen.rule }),
        ...(subject === "" ? {} : { subject }),
      },
    });
    again();
  }
  return (
    <ReasonDialog
      title={texts.addSilence}
      about={texts.aboutSilence}
      verb={texts.addSilence}
      done={texts.added}
      act={act}
      close={close}
    >
      <label>
        {texts.ruleField}
        <select name="rule">
          <option value="">{texts.everyRule}</option>
          {rules.map(({ name, rule }) => (
            <option key={rule} value={rule} selected={rule === about?.rule}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        {texts.subjectField}
        <input name="subject" maxLength={255} value={about?.subject ?? ""} placeholder={texts.subjectHint} />
      </label>
      <label>
        {texts.forField}
        <select name="hours">
          {HOURS.map((hours) => (
            <option key={hours} value={hours}>
              {texts.hours[hours]}
            </option>
          ))}
        </select>
      </label>
    </ReasonDialog>
  );
}
