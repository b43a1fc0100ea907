import { alertList, channelTested, silenceAdded, silenceBody, silenceEnded } from "./alert-schemas.ts";
import { change, look, type Route } from "./route.ts";
import { reasonBody } from "./schemas.ts";

export const ALERT_ROUTES = {
  alerts: {
    ...look,
    path: "/s/:source/alerts",
    answer: alertList,
    about: "what is wrong and since when, what was, what is silenced, and who is told",
  },
  addSilence: {
    ...change,
    path: "/s/:source/alerts/silences",
    audit: "silence",
    body: silenceBody,
    answer: silenceAdded,
    about: "tell nobody of a rule for a while",
  },
  endSilence: {
    ...change,
    path: "/s/:source/alerts/silences/:silence/end",
    audit: "silence end",
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
