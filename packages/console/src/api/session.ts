import { computed, signal } from "@preact/signals";
import type { AnswerOf, BodyOf, RouteName } from "rowpost-server/api";
import { ApiProblem, call } from "./client.ts";

type Session = AnswerOf<"session">;

/** Undefined: not yet loaded. */
const session = signal<Session | undefined>(undefined);
export const sessionProblem = signal<ApiProblem | undefined>(undefined);
export const meta = signal<AnswerOf<"meta"> | undefined>(undefined);
const wasLoggedIn = signal(false);

export const isLoggedIn = computed(() => session.value?.principal != null);
/** Undefined: not yet known. */
export const ways = computed(() => session.value?.ways);
export const hasEnded = computed(() => wasLoggedIn.value && !isLoggedIn.value);

export function may(route: RouteName): boolean {
  return meta.value?.permissions.includes(route) === true;
}

/** Loads the session; first uses a one-time link in the address. */
export async function beginSession(): Promise<void> {
  const [, token] = /^#t=(.+)$/.exec(location.hash) ?? [];
  if (token !== undefined) {
    // Removed from the address and the history in any case.
    history.replaceState(null, "", location.href.replace(/#.*$/, ""));
    await attempt(async () => opened((await call("exchangeLink", { body: { token } })).answer));
  }
  if (!isLoggedIn.value) {
    const failed = sessionProblem.value;
    await attempt(async () => opened((await call("session")).answer));
    if (failed !== undefined && !isLoggedIn.value) sessionProblem.value = failed;
  }
}

export async function logIn(body: BodyOf<"login">): Promise<boolean> {
  await attempt(async () => opened((await call("login", { body })).answer));
  return isLoggedIn.value;
}

export async function logOut(): Promise<void> {
  await attempt(async () => {
    await call("logout");
    wasLoggedIn.value = false;
    meta.value = undefined;
    session.value = (await call("session")).answer;
  });
}

/** The session has ended; the address stays. */
export function sessionEnded(): void {
  if (session.value?.principal == null) return;
  session.value = { ...session.value, principal: null };
  void attempt(async () => opened((await call("session")).answer));
}

/** Loads the user's rights, retrying until it succeeds. */
async function loadMeta(): Promise<void> {
  try {
    meta.value = (await call("meta")).answer;
    sessionProblem.value = undefined;
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error;
    if (error.code === "unauthenticated") return sessionEnded();
    sessionProblem.value = error;
    setTimeout(() => void loadMeta(), 3_000);
  }
}

function opened(answer: Session): void {
  session.value = answer;
  if (answer.principal === null) return;
  wasLoggedIn.value = true;
  void loadMeta();
}

async function attempt(work: () => Promise<void>): Promise<void> {
  try {
    sessionProblem.value = undefined;
    await work();
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error;
    sessionProblem.value = error;
  }
}
