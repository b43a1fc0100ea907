/** The pages, with counts of problems from one small request. */
import { useEffect, useRef } from "preact/hooks";
import { hrefOf, PAGES, type Page } from "../address.ts";
import { call } from "../api/client.ts";
import { usePolled } from "../api/polling.ts";
import { formatCount, formatNumber } from "../format.ts";
import { words } from "../language/language.ts";

const PULSE_MS = 5_000;

export function Menu({ page, source }: { readonly page: Page; readonly source: string }) {
  const { bar, menu } = words.value;
  const list = useRef<HTMLElement>(null);
  const { answer } = usePolled("pulse", async (signal) => (await call("pulse", { signal })).answer, {
    everyMs: PULSE_MS,
  });
  const mine = answer?.sources.find(({ name }) => name === source);
  const failed = mine?.states.find(({ state }) => state === "failed")?.count;
  const alerts = mine?.alerts;
  // On a phone the menu is wider than the screen, and wider still with counts.
  useEffect(() => {
    list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [page, answer === undefined]);
  return (
    <nav ref={list} aria-label={bar.menu}>
      {PAGES.map((name) => (
        <a key={name} href={hrefOf(source, name)} aria-current={name === page ? "page" : undefined}>
          {menu[name]}
          {name === "failures" && failed !== undefined && (failed.value > 0 || failed.relation === "gte") && (
            <span class="badge num">{formatCount(failed)}</span>
          )}
          {name === "alerts" && alerts !== undefined && (
            <span class={`badge num${alerts.severity === "critical" ? "" : " tag-held"}`}>
              {formatNumber(alerts.count)}
            </span>
          )}
        </a>
      ))}
    </nav>
  );
}
