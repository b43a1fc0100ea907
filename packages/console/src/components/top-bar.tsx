import type { Signal } from "@preact/signals";
import { go, hrefOf, place } from "../address.ts";
import { freshness, now, paused } from "../api/polling.ts";
import { logOut, meta } from "../api/session.ts";
import { formatClock, formatDuration, zoneOffset } from "../format.ts";
import { words } from "../language/language.ts";
import { language, THEMES, theme, zone } from "../settings.ts";
import { Menu } from "./menu.tsx";
import { SearchBox } from "./search-box.tsx";

const STALE_MS = 15_000;

export function TopBar({ help }: { readonly help: () => void }) {
  const { page, source: named } = place.value;
  const sources = meta.value?.sources ?? [];
  const source = named || (sources[0]?.name ?? "");
  const { bar } = words.value;
  return (
    <header class="bar">
      <div class="bar-top">
        <a class="brand" href={hrefOf(source, "overview")}>
          <img src="icon.svg" alt="" width="22" height="22" />
          rowpost
        </a>
        {sources.length > 1 && (
          <select
            aria-label={bar.source}
            value={source}
            onChange={({ currentTarget }) => go(hrefOf(currentTarget.value, page))}
          >
            {sources.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
        <SearchBox source={source} />
        <Freshness />
        <Preferences help={help} />
      </div>
      <Menu page={page} source={source} />
    </header>
  );
}

/** Age of the data; amber when it is late, red when nothing answers. */
function Freshness() {
  const { bar } = words.value;
  const { asOf, problem } = freshness.value;
  const ageMs = asOf === undefined ? undefined : now.value - asOf;
  const isLate = ageMs !== undefined && ageMs > STALE_MS;
  const kind = problem?.isAway === true ? "bad" : isLate || paused.value ? "late" : "good";
  const away = problem?.code === "unreachable" ? bar.cannotReach : bar.away;
  return (
    <span class={`fresh fresh-${kind}`}>
      {asOf !== undefined && (
        <span class="num" title={zone.value === "local" ? bar.localZone : zone.value}>
          {bar.asOf(formatClock(new Date(asOf)))} {zoneOffset()}
        </span>
      )}
      {problem?.isAway === true && <strong>{away}</strong>}
      {isLate && <span>{bar.ago(formatDuration(ageMs ?? 0))}</span>}
      <button
        type="button"
        class="icon"
        aria-pressed={paused.value}
        aria-label={paused.value ? bar.goOn : bar.pause}
        title={`${paused.value ? bar.goOn : bar.pause} (p)`}
        onClick={() => {
          paused.value = !paused.value;
        }}
      >
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <path d={paused.value ? "M5 3.5v9l7-4.5Z" : "M5.5 3.5v9m5-9v9"} />
        </svg>
        {paused.value && bar.paused}
      </button>
    </span>
  );
}

function Preferences({ help }: { readonly help: () => void }) {
  const { bar, roles } = words.value;
  const principal = meta.value?.principal;
  return (
    <details class="preferences">
      <summary>
        {principal === undefined ? "…" : principal.name}
        {principal !== undefined && (
          <span class="quiet">{[roles[principal.role], ...(principal.topics ?? [])].join(" · ")}</span>
        )}
        {meta.value?.readOnly === true && <span class="tag">{bar.readOnly}</span>}
      </summary>
      <div class="panel">
        <Choices />
        <div class="panel-buttons">
          <button type="button" onClick={help}>
            {bar.help} <kbd>?</kbd>
          </button>
          <button type="button" onClick={() => void logOut()}>
            {bar.logout}
          </button>
        </div>
      </div>
    </details>
  );
}

const LANGUAGE_NAMES = [
  ["zh", "中文"],
  ["en", "English"],
] as const;

function Choices() {
  const { bar } = words.value;
  const zones = Intl.supportedValuesOf("timeZone").map((name) => [name, name] as const);
  return (
    <>
      <Choice name={bar.language} chosen={language} values={LANGUAGE_NAMES} />
      <Choice name={bar.theme} chosen={theme} values={THEMES.map((name) => [name, bar.themes[name]] as const)} />
      <Choice name={bar.zone} chosen={zone} values={[["local", bar.localZone], ["UTC", "UTC"], ...zones]} />
    </>
  );
}

function Choice<Value extends string>({
  chosen,
  name,
  values,
}: {
  readonly name: string;
  readonly chosen: Signal<Value>;
  readonly values: readonly (readonly [Value, string])[];
}) {
  return (
    <label>
      {name}
      <select
        value={chosen.value}
        onChange={({ currentTarget }) => {
          chosen.value = values.find(([value]) => value === currentTarget.value)?.[0] ?? chosen.value;
        }}
      >
        {values.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
