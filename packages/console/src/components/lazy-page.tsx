/** A page loaded on demand, to keep the first load small. */
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { ApiProblem } from "../api/client.ts";
import { words } from "../language/language.ts";
import type { PageProps } from "../pages/page.ts";
import { ProblemBox } from "./problem.tsx";

type Part = (props: PageProps) => JSX.Element;

/** Loaded once. A failed load can be retried. */
export function lazyPage(load: () => Promise<Part>): Part {
  const part = signal<Part | undefined>(undefined);
  const hasFailed = signal(false);

  async function fetchPart(): Promise<void> {
    hasFailed.value = false;
    try {
      const loaded = await load();
      part.value = loaded;
    } catch {
      hasFailed.value = true;
    }
  }

  return function LazyPage(props: PageProps) {
    useEffect(() => {
      if (part.value === undefined) void fetchPart();
    }, []);
    const Loaded = part.value;
    if (Loaded !== undefined) return <Loaded {...props} />;
    if (hasFailed.value)
      // A browser caches a failed module until the page is reloaded.
      return <ProblemBox problem={new ApiProblem("unreachable", "", "")} again={() => location.reload()} />;
    return <p class="loading">{words.value.common.loading}</p>;
  };
}
