import type { Silence } from "rowpost/admin";
import { type KnownAlerts, knownAlerts } from "../../alerts/known.ts";
import { isMeant, rankOf } from "../../alerts/lifecycle.ts";
import { lineOf, nameOf } from "../../alerts/rule-texts.ts";
import { RULE_NAMES } from "../../alerts/rules.ts";
import type { Alert } from "../../alerts/state.ts";
import type { Call, ConsoleParts, HandlersOf } from "../call.ts";
import { languageOf, Problem } from "../problem.ts";
import type { AnswerOf } from "../routes.ts";

/** A robot that gets more than about twenty a minute is blocked for ten. */
const BETWEEN_TESTS_MS = 10_000;

type ListedAlert = AnswerOf<"alerts">["items"][number];

export function alertHandlers({
  alertChannels,
}: ConsoleParts): HandlersOf<"alerts" | "addSilence" | "endSilence" | "testChannel"> {
  const testedMs = new Map<string, number>();
  const configured = alertChannels?.names ?? [];

  return {
    async alerts({ request, source }) {
      const language = languageOf(request.headers.get("accept-language"));
      const asOf = new Date().toISOString();
      const known = knownAlerts(await source.alerts.read());
      const silences = await source.alerts.silences();
      const { ageMs, isEvaluated, state } = known;
      const names = [...new Set([...configured, ...Object.keys(state.channels)])];
      return {
        json: {
          items: itemsOf(known, silences, language),
          past: pastOf(known),
          silences: silences.map((each) => ({ ...each })),
          rules: RULE_NAMES.map((rule) => ({ rule, name: nameOf(rule, language) })),
          channels: names.map((name) => {
            const last = state.channels[name];
            return { name, canTest: configured.includes(name), last };
          }),
          isEvaluated,
          ageMs,
          asOf,
        },
        headers: { "content-language": language, vary: "accept-language" },
      };
    },

    async addSilence({ body: { forMs, rule, subject, ...body }, principal, source }) {
      const action = { author: principal.name, via: principal.via, reason: body.reason.trim() };
      return { json: { id: await source.alerts.silence({ rule, subject, forMs, action }) } };
    },

    async endSilence({ body, principal, silence, source }) {
      const action = { author: principal.name, via: principal.via, reason: body.reason.trim() };
      if (!(await source.alerts.endSilence({ id: silence, action })))
        throw new Problem("not-found", `there is no silence ${silence} that is active`);
      return { json: { ended: silence } };
    },

    async testChannel({ channel, principal, source }: Call<"testChannel">) {
      if (alertChannels === undefined)
        throw new Problem("not-found", "this console has no channels: start it with --alerts FILE");
      if (!configured.includes(channel))
        throw new Problem("not-found", `there is no channel ${channel}; this console has ${configured.join(", ")}`);
      const waitMs = BETWEEN_TESTS_MS - (performance.now() - (testedMs.get(channel) ?? Number.NEGATIVE_INFINITY));
      if (waitMs > 0) {
        const headers = { "retry-after": String(Math.ceil(waitMs / 1_000)) };
        throw new Problem("rate-limited", `${channel} had a test a moment ago`, { headers });
      }
      testedMs.set(channel, performance.now());
      const answer = await alertChannels.test(channel, source.name);
      await source.operations.record({
        author: principal.name,
        via: principal.via,
        action: "alert test",
        reason: `tries channel ${channel}`,
        result: "done" as const,
        details: { channel, ok: answer.ok, answer: answer.answer },
      });
      return { json: { ...answer } };
    },
  };
}

function pastOf({ state }: KnownAlerts): AnswerOf<"alerts">["past"] {
  return state.history
    .map(({ forMs, rule, severity, since, subject, until }) => ({ rule, subject, severity, since, until, forMs }))
    .reverse();
}

/** Firing before waiting; then the gravest, then the oldest first. */
function itemsOf(known: KnownAlerts, silences: readonly Silence[], language: "en" | "zh"): ListedAlert[] {
  const { ageMs = 0, state } = known;
  const active = silences.filter((each) => each.active);
  const order = (alert: Alert): number => (alert.phase === "firing" ? 10 : 0) + rankOf(alert.severity);
  return Object.values(state.alerts)
    .sort((a, b) => order(b) - order(a) || a.sinceMs - b.sinceMs)
    .map((alert) => {
      const { facts, phase, rule, severity, since, sinceMs, subject } = alert;
      const { command, peak, title, why } = lineOf(alert, language);
      const silence = active.find((each) => isMeant(each, alert))?.id;
      return {
        rule,
        subject,
        severity,
        phase,
        title,
        why,
        command,
        peak,
        since,
        forMs: Math.max(0, state.clockMs - sinceMs) + ageMs,
        ...(rule === "oldest-due" && facts["id"] !== undefined ? { messageId: String(facts["id"]) } : {}),
        silence,
      };
    });
}
