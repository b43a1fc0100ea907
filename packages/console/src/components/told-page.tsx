import type { ComponentChildren } from "preact";
import type { Polled } from "../api/polling.ts";
import { Loaded } from "./problem.tsx";

interface ToldPageProps<Answer> {
  readonly texts: { readonly title: string; readonly about: string };
  readonly polled: Polled<Answer>;
  readonly children: (answer: Answer) => ComponentChildren;
}

export function ToldPage<Answer>({ children, polled, texts }: ToldPageProps<Answer>) {
  return (
    <>
      <h1 tabIndex={-1}>{texts.title}</h1>
      <p class="told">{texts.about}</p>
      <Loaded polled={polled}>{children}</Loaded>
    </>
  );
}
