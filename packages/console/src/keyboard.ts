/** Shortcuts that work everywhere except in fields and dialogs. */
import { go, hrefOf, type Page, place } from "./address.ts";
import { paused } from "./api/polling.ts";
import { meta } from "./api/session.ts";
import { keys } from "./settings.ts";

const PAGE_KEYS: Readonly<Record<string, Page>> = {
  o: "overview",
  m: "messages",
  f: "failures",
  t: "topics",
  r: "relays",
  b: "operations",
  u: "audit",
  q: "queue",
  c: "unconfirmed",
  a: "alerts",
  d: "doctor",
};

/** Time limit of the second key of `g o`. */
const PAIR_MS = 1_500;

/** `help` opens the list of keys. Returns a function that stops it. */
export function watchKeys(help: () => void): () => void {
  let goUntil = 0;

  function onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || keys.value === "off") return;
    if (isTyping(event.target) || document.querySelector("dialog[open]") !== null) return;
    const page = performance.now() < goUntil ? PAGE_KEYS[event.key] : undefined;
    goUntil = 0;
    if (page !== undefined) go(hrefOf(place.value.source || (meta.value?.sources[0]?.name ?? ""), page));
    else if (event.key === "g") goUntil = performance.now() + PAIR_MS;
    else if (event.key === "/") document.querySelector<HTMLElement>("[data-search]")?.focus();
    else if (event.key === "p") paused.value = !paused.value;
    else if (event.key === "?") help();
    else if (event.key === "j" || event.key === "k") moveRow(event.key === "j" ? 1 : -1);
    else if (event.key === "[" || event.key === "]")
      document.querySelector<HTMLElement>(event.key === "[" ? "[data-newer]" : "[data-older]")?.click();
    else return;
    event.preventDefault();
  }

  document.addEventListener("keydown", onKey);
  return () => document.removeEventListener("keydown", onKey);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("input, select, textarea, [contenteditable]") !== null;
}

/** Moves the focus between the links of rows; Enter then opens one. */
function moveRow(step: number): void {
  const links: Element[] = [...document.querySelectorAll("[data-rows] [data-row]")];
  const at = document.activeElement === null ? -1 : links.indexOf(document.activeElement);
  const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.max(0, Math.min(links.length - 1, at + step))];
  if (next instanceof HTMLElement) next.focus();
}
