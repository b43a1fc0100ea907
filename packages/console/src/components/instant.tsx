import { now } from "../api/polling.ts";
import { formatDuration, formatInstant } from "../format.ts";
import { words } from "../language/language.ts";

/** An instant in the chosen zone, with UTC in the tooltip. */
export function Instant({ at }: { readonly at: string | null | undefined }) {
  if (at === null || at === undefined) return <span class="quiet">–</span>;
  return (
    <time class="num" dateTime={at} title={`${at} (UTC)`}>
      {formatInstant(at)}
    </time>
  );
}

export function InstantAndSpan({ at }: { readonly at: string }) {
  const ms = Date.parse(at) - now.value;
  const { bar } = words.value;
  return (
    <span>
      <Instant at={at} />{" "}
      <span class="quiet">({ms >= 0 ? `+${formatDuration(ms)}` : bar.ago(formatDuration(-ms))})</span>
    </span>
  );
}
