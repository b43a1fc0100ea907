/** Sends a changed copy of a message, and settles the original. */
import { type Signal, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { AnswerOf, BodyOf } from "rowpost-server/api";
import { go, hrefOf } from "../address.ts";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { fieldOf } from "../form.ts";
import { formatNumber } from "../format.ts";
import { words } from "../language/language.ts";
import { headerLines, headersOf, nextKey, stretchOf } from "../message-copy.ts";
import type { Message } from "./message-table.tsx";
import { ReasonDialog } from "./reason-dialog.tsx";
import { WaitingDialog } from "./waiting-dialog.tsx";

type Stored = AnswerOf<"body">;
type Change = BodyOf<"copy">;
type Original = NonNullable<Change["original"]>;

interface CopyProps {
  readonly message: Message;
  readonly source: string;
  readonly etag: string | undefined;
  readonly close: () => void;
}

/** Reading the body is audited, as everywhere. */
export function CopyDialog(props: CopyProps) {
  const { close, message, source } = props;
  const load = async (signal: AbortSignal) => (await call("body", { source, id: message.id, signal })).answer;
  const { answer, problem } = usePolled(`copy ${source} ${message.id}`, load, { everyMs: 0 });
  if (answer !== undefined) return <Editing {...props} stored={answer} />;
  return <WaitingDialog {...{ close, problem }} title={titleOf(message)} />;
}

function titleOf({ id }: Message): string {
  return `${words.value.message.copying.title} · ${id}`;
}

function Editing({ close, etag, message, source, stored }: CopyProps & { readonly stored: Stored }) {
  // The version that the user saw, not one polled meanwhile.
  const seen = useRef(etag);
  const edited = useSignal(stored.body);
  const { copying, names } = words.value.message;
  const lines = headerLines(stored.headers);
  async function act(form: FormData): Promise<void> {
    const topic = fieldOf(form, "topic");
    const headers = fieldOf(form, "headers");
    const change: Change = {
      reason: fieldOf(form, "reason"),
      key: fieldOf(form, "key"),
      original: originalOf(form),
      ...(topic === message.topic ? {} : { topic }),
      ...(edited.value === stored.body ? {} : { body: edited.value }),
      ...(headers === lines?.trim() || lines === undefined ? {} : { headers: headersOf(headers) }),
    };
    const { answer } = await call("copy", { source, id: message.id, ifMatch: seen.current ?? "", body: change });
    go(hrefOf(source, "messages", { id: answer.message.id }));
  }
  return (
    <ReasonDialog
      {...{ act, close, about: copying.about, done: copying.done, title: titleOf(message), verb: copying.send }}
    >
      <label>
        {names.key}
        <input
          name="key"
          class="mono"
          required
          maxLength={255}
          defaultValue={nextKey(message.key)}
          spellcheck={false}
        />
      </label>
      <label>
        {names.topic}
        <input name="topic" class="mono" required maxLength={255} defaultValue={message.topic} spellcheck={false} />
      </label>
      <BodyField stored={stored} edited={edited} />
      {lines !== undefined && (
        <label>
          {copying.headers}
          <textarea
            name="headers"
            class="mono"
            rows={3}
            placeholder="tenant: acme"
            defaultValue={lines}
            spellcheck={false}
          />
        </label>
      )}
      <OriginalField message={message} />
    </ReasonDialog>
  );
}

function BodyField({ edited, stored }: { readonly stored: Stored; readonly edited: Signal<string> }) {
  const { copying } = words.value.message;
  if (stored.truncated || stored.contentType?.endsWith(";base64") === true)
    return <p class="quiet">{copying.bodyKept(formatNumber(stored.length))}</p>;
  return (
    <>
      <label>
        {copying.body}
        <textarea
          name="body"
          class="mono"
          rows={8}
          defaultValue={stored.body}
          spellcheck={false}
          onInput={({ currentTarget }) => {
            edited.value = currentTarget.value;
          }}
        />
      </label>
      <Stretch before={stored.body} after={edited.value} />
    </>
  );
}

function Stretch({ after, before }: { readonly before: string; readonly after: string }) {
  const stretch = stretchOf(before, after);
  if (stretch === undefined) return null;
  const { added, behind, front, removed } = stretch;
  return (
    <p class="stretch mono">
      {front}
      {removed !== "" && <del>{removed}</del>}
      {added !== "" && <ins>{added}</ins>}
      {behind}
    </p>
  );
}

function originalsOf({ archived, orderingKey, state }: Message): readonly Original[] {
  if (archived) return ["keep"];
  switch (state) {
    case "failed":
      // With an ordering key the copy would wait behind it.
      return typeof orderingKey === "string" ? ["archive", "suspend", "keep"] : ["suspend", "archive", "keep"];
    case "pending":
      return ["suspend", "keep"];
    case "sent":
    case "consumed":
      return ["keep", "archive"];
    default:
      return ["keep"];
  }
}

function OriginalField({ message }: { readonly message: Message }) {
  const { copying } = words.value.message;
  return (
    <label>
      {copying.original}
      <select name="original">
        {originalsOf(message).map((name) => (
          <option key={name} value={name}>
            {copying.originals[name]}
          </option>
        ))}
      </select>
    </label>
  );
}

function originalOf(form: FormData): Original {
  return (["suspend", "archive"] as const).find((name) => name === form.get("original")) ?? "keep";
}
