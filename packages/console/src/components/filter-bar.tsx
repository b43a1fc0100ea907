import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { go, hrefOf } from "../address.ts";
import { chipsOf, FilterError, filterLine, type MessageQuery, parseFilter } from "../filter.ts";
import { words } from "../language/language.ts";
import { STATE_WORDS } from "./search-box.tsx";

/** The filter line, and a removable chip for each part. */
export function FilterBar({ query, source }: { readonly source: string; readonly query: MessageQuery }) {
  const wrong = useSignal("");
  const field = useRef<HTMLInputElement>(null);
  const { messages: texts } = words.value;
  const line = filterLine(query);
  const chips = chipsOf(query);
  useEffect(() => {
    if (field.current !== null) field.current.value = line;
    wrong.value = "";
  }, [line]);

  function search(event: SubmitEvent): void {
    event.preventDefault();
    try {
      wrong.value = "";
      go(hrefOf(source, "messages", { query: parseFilter(field.current?.value ?? "", STATE_WORDS) }));
    } catch (error) {
      if (!(error instanceof FilterError)) throw error;
      wrong.value = error.told(texts.wrong);
    }
  }

  return (
    <form class="filter" onSubmit={search}>
      <div class="filter-line">
        <input
          ref={field}
          class="mono"
          aria-label={texts.filter}
          aria-describedby="filter-hint"
          aria-invalid={wrong.value !== ""}
          autocomplete="off"
          spellcheck={false}
        />
        <button type="submit" class="main">
          {texts.search}
        </button>
      </div>
      {wrong.value !== "" && (
        <p class="wrong" role="alert">
          {wrong.value}
        </p>
      )}
      {chips.length === 0 ? (
        <p class="hint mono" id="filter-hint">
          {texts.hint}
        </p>
      ) : (
        <p class="chips" id="filter-hint">
          {chips.map(({ name, text }) => (
            <a key={name} class="chip" href={withoutChip(source, query, name)} aria-label={texts.remove(text)}>
              {text} <span aria-hidden="true">×</span>
            </a>
          ))}
          {chips.length > 1 && <a href={hrefOf(source, "messages")}>{texts.clear}</a>}
        </p>
      )}
    </form>
  );
}

export function withoutChip(source: string, query: MessageQuery, name: keyof MessageQuery): string {
  return hrefOf(source, "messages", { query: { ...query, [name]: undefined } });
}
