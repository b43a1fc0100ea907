/** The address is the state of the app: source, page, and every filter. Relative to the base. */
import { computed, signal } from "@preact/signals";

export const PAGES = [
  "overview",
  "messages",
  "failures",
  "topics",
  "relays",
  "operations",
  "queue",
  "unconfirmed",
  "alerts",
  "doctor",
  "audit",
] as const;
export type Page = (typeof PAGES)[number];

export interface Place {
  /** Empty: the first one. */
  readonly source: string;
  readonly page: Page;
  readonly id: string | undefined;
  readonly query: URLSearchParams;
}

const current = signal(location.href);

export const place = computed((): Place => placeOf(new URL(current.value)));

/** Without the fragment. */
export const here = computed((): string => {
  const { pathname, search } = new URL(current.value);
  return `${pathname}${search}`;
});

function placeOf(url: URL): Place {
  const base = new URL(document.baseURI).pathname;
  const below = url.pathname.startsWith(base) ? url.pathname.slice(base.length) : "";
  const [first = "", second = "", third, fourth] = below.split("/").map(decoded);
  // m/<source>/<type>/<key>: a message by type and key.
  if (first === "m" && fourth !== undefined) {
    const query = new URLSearchParams({ type: third ?? "", key: fourth, in: "live,archive" });
    return { source: second, page: "messages", id: undefined, query };
  }
  const page = PAGES.find((name) => name === second) ?? "overview";
  const id = page === "messages" && third !== undefined && third !== "" ? third : undefined;
  return { source: first, page, id, query: url.searchParams };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Omits undefined and empty parameters. */
export function hrefOf(
  source: string,
  page: Page,
  { id, query = {} }: { readonly id?: string; readonly query?: Readonly<Record<string, string | undefined>> } = {},
): string {
  // The names of the tables are not yet known.
  if (source === "") return document.baseURI;
  const pairs = Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : []));
  const search = new URLSearchParams(pairs).toString();
  const path = [source, page, ...(id === undefined ? [] : [id])].map(encodeURIComponent).join("/");
  return new URL(`${path}${search === "" ? "" : `?${search}`}`, document.baseURI).href;
}

/** `replaces`: without a history entry. */
export function go(href: string, { replaces = false }: { readonly replaces?: boolean } = {}): void {
  if (replaces) history.replaceState(null, "", href);
  else history.pushState(null, "", href);
  current.value = location.href;
}

/** Handles links of the app and the browser's back and forward. */
export function watchAddress(): void {
  addEventListener("popstate", () => {
    current.value = location.href;
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (link === null || link.target !== "" || link.hasAttribute("download")) return;
    if (!link.href.startsWith(document.baseURI) || link.hash !== "") return;
    event.preventDefault();
    if (link.href !== location.href) go(link.href);
    scrollTo(0, 0);
  });
}
