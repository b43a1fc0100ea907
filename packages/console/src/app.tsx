import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { here, type Page, place } from "./address.ts";
import { announcement, notice } from "./announce.ts";
import { isLoggedIn, meta, sessionProblem } from "./api/session.ts";
import { KeyHelp } from "./components/key-help.tsx";
import { lazyPage } from "./components/lazy-page.tsx";
import { ProblemBox } from "./components/problem.tsx";
import { TopBar } from "./components/top-bar.tsx";
import { watchKeys } from "./keyboard.ts";
import { words } from "./language/language.ts";
import { AuditPage } from "./pages/audit.tsx";
import { FailuresPage } from "./pages/failures.tsx";
import { LoginPage } from "./pages/login.tsx";
import { MessagePage } from "./pages/message.tsx";
import { MessagesPage } from "./pages/messages.tsx";
import { OperationsPage } from "./pages/operations.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import type { PageProps } from "./pages/page.ts";
import { RelaysPage } from "./pages/relays.tsx";
import { TopicsPage } from "./pages/topics.tsx";

const PAGE_PARTS: Readonly<Record<Page, (props: PageProps) => JSX.Element>> = {
  overview: OverviewPage,
  messages: MessagesPage,
  failures: FailuresPage,
  topics: TopicsPage,
  relays: RelaysPage,
  operations: OperationsPage,
  queue: lazyPage(async () => (await import("./queue/queue-page.tsx")).QueuePage),
  unconfirmed: lazyPage(async () => (await import("./care/unconfirmed.tsx")).UnconfirmedPage),
  alerts: lazyPage(async () => (await import("./care/alerts.tsx")).AlertsPage),
  doctor: lazyPage(async () => (await import("./care/doctor.tsx")).DoctorPage),
  audit: AuditPage,
};

export function App() {
  if (!isLoggedIn.value) return <LoginPage />;
  return <Frame />;
}

function Frame() {
  const helpIsOpen = useSignal(false);
  useEffect(
    () =>
      watchKeys(() => {
        helpIsOpen.value = true;
      }),
    [],
  );
  return (
    <>
      <a class="skip" href={`${here.value}#content`}>
        {words.value.bar.skip}
      </a>
      <TopBar
        help={() => {
          helpIsOpen.value = true;
        }}
      />
      <main id="content" tabIndex={-1}>
        <Content />
      </main>
      <div class="sr-only" aria-live="polite">
        {announcement.value}
      </div>
      {notice.value !== "" && (
        <div class="notice" aria-hidden="true">
          {notice.value}
        </div>
      )}
      {helpIsOpen.value && (
        <KeyHelp
          close={() => {
            helpIsOpen.value = false;
          }}
        />
      )}
    </>
  );
}

/** The page of the address. Focuses its heading, as after a page load. */
function Content() {
  const { id, page, source: named } = place.value;
  const source = named || (meta.value?.sources[0]?.name ?? "");
  const title = id ?? words.value.menu[page];
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${title} · ${words.value.name}`;
    if (!isFirst.current) document.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [page, id, source]);
  useEffect(() => {
    document.title = `${title} · ${words.value.name}`;
  }, [title]);
  if (source === "")
    return sessionProblem.value === undefined ? (
      <p class="loading">{words.value.common.loading}</p>
    ) : (
      <ProblemBox problem={sessionProblem.value} />
    );
  if (id !== undefined) return <MessagePage key={`${source} ${id}`} source={source} id={id} />;
  const Part = PAGE_PARTS[page];
  return <Part key={`${source} ${page}`} source={source} />;
}
