import { useSignal } from "@preact/signals";
import { go, hrefOf } from "../address.ts";
import { FilterError, parseFilter } from "../filter.ts";
import { en } from "../language/en.ts";
import { words } from "../language/language.ts";
import { zh } from "../language/zh.ts";

/** States are accepted in every language. */
export const STATE_WORDS = [en.states, zh.states];

/** Accepts an id, a key or filters; shown on every page. */
export function SearchBox({ source }: { readonly source: string }) {
  const wrong = useSignal("");
  const { bar, messages } = words.value;

  function search(event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): void {
    event.preventDefault();
    const line = new FormData(event.currentTarget).get("line");
    try {
      wrong.value = "";
      const query = parseFilter(typeof line === "string" ? line.trim() : "", STATE_WORDS);
      go(hrefOf(source, "messages", { query }));
      event.currentTarget.reset();
    } catch (error) {
      if (!(error instanceof FilterError)) throw error;
      wrong.value = error.told(messages.wrong);
    }
  }

  return (
    <search class="search">
      <form onSubmit={search}>
        <input
          type="search"
          name="line"
          data-search
          aria-label={bar.search}
          placeholder={bar.searchHint}
          autocomplete="off"
          spellcheck={false}
          aria-invalid={wrong.value !== ""}
          onInput={() => {
            wrong.value = "";
          }}
        />
        <kbd>/</kbd>
        {wrong.value !== "" && (
          <span class="wrong" role="alert">
            {wrong.value}
          </span>
        )}
      </form>
    </search>
  );
}
