/** The login. The address stays, so that its page opens afterwards. */
import { useSignal } from "@preact/signals";
import { hasEnded, logIn, sessionProblem, ways } from "../api/session.ts";
import { words } from "../language/language.ts";
import { language } from "../settings.ts";

export function LoginPage() {
  const { common, login, name: title, problem: texts } = words.value;
  const known = ways.value;
  const problem = sessionProblem.value;
  const told = problem && (problem.code === "unreachable" ? texts.unreachable : problem.message || problem.title);
  if (known === undefined && problem === undefined) return <p class="loading">{common.loading}</p>;
  const noWay = known !== undefined && !known.password && !known.link;
  return (
    <main class="login">
      <img src="icon.svg" alt="" width="40" height="40" />
      <h1 tabIndex={-1}>{title}</h1>
      {hasEnded.value && <p>{login.ended}</p>}
      {told !== undefined && (
        <p class="wrong" role="alert">
          {told}
        </p>
      )}
      {known?.password === true && <PasswordForm />}
      {known?.link === true && <p>{login.link}</p>}
      {noWay && <p>{problem?.code === "unauthenticated" || hasEnded.value ? login.linkGone : login.noWay}</p>}
      <button
        type="button"
        class="plain"
        lang={language.value === "zh" ? "en" : "zh-CN"}
        onClick={() => {
          language.value = language.value === "zh" ? "en" : "zh";
        }}
      >
        {language.value === "zh" ? "English" : "中文"}
      </button>
    </main>
  );
}

function PasswordForm() {
  const { login } = words.value;
  const isBusy = useSignal(false);
  async function submit(event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): Promise<void> {
    event.preventDefault();
    const given = new FormData(event.currentTarget);
    isBusy.value = true;
    await logIn({ name: textOf(given.get("name")), password: textOf(given.get("password")) });
    isBusy.value = false;
  }
  return (
    <form onSubmit={(event) => void submit(event)}>
      <label>
        {login.name}
        <input name="name" autocomplete="username" required />
      </label>
      <label>
        {login.password}
        <input name="password" type="password" autocomplete="current-password" required />
      </label>
      <button type="submit" class="main" disabled={isBusy.value}>
        {login.submit}
      </button>
    </form>
  );
}

function textOf(value: FormDataEntryValue | null): string {
  return typeof value === "string" ? value : "";
}
