/** The part of the route table about alerts. */
import { alertList, channelTested, silenceAdded, silenceBody, silenceEnded } from "./alert-schemas.ts";
import type { Route } from "./route.ts";
import { reasonBody } from "./schemas.ts";

export const ALERT_ROUTES = {
  alerts: {
    method: "GET",
    path: "/s/:source/alerts",
    role: "reader",
    answer: alertList,
    about: "what is wrong and since when, what was, what is silenced, and who is told",
  },
  addSilence: {
    method: "POST",
    path: "/s/:source/alerts/silences",
    role: "operator",
    audit: "silence",
    changes: true,
    body: silenceBody,
    answer: silenceAdded,
    about: "tell nobody of a rule for a while",
  },
  endSilence: {
    method: "POST",
    path: "/s/:source/alerts/silences/:silence/end",
    role: "operator",
    audit: "silence end",
    changes: true,
    body: reasonBody,
    answer: silenceEnded,
    about: "end a silence now",
  },
  testChannel: {
    method: "POST",
    path: "/s/:source/alerts/channels/:channel/test",
    role: "admin",
    audit: "alert test",
    answer: channelTested,
    about: "send a test notice to a channel that this console was started with",
  },
} as const satisfies Readonly<Record<string, Route>>;
