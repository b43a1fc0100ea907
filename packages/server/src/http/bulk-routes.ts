import {
  changedCount,
  operationAnswer,
  operationDetail,
  operationList,
  preview,
  previewBody,
  resetBackoffBody,
  resumeScopeBody,
  startBody,
  suspendScopeBody,
} from "./bulk-schemas.ts";
import { change, look, lookFiltered, type Route } from "./route.ts";
import { reasonBody } from "./schemas.ts";

/** The preview replaces the version check. */
const widely = { method: "POST", role: "operator", changes: true, limited: "filtered" } as const;

export const BULK_ROUTES = {
  suspendScope: {
    ...widely,
    path: "/s/:source/suspensions",
    audit: "suspend rule",
    body: suspendScopeBody,
    answer: changedCount,
    about: "hold back all of a topic, a type, an ordering key or the relay, also what is still to come",
  },
  resumeScope: {
    ...widely,
    path: "/s/:source/suspensions/lift",
    audit: "resume rule",
    body: resumeScopeBody,
    answer: changedCount,
    about: "lift such a rule, and let the messages go that it held back",
  },
  resetBackoff: {
    ...widely,
    path: "/s/:source/reset-backoff",
    audit: "reset backoff",
    body: resetBackoffBody,
    answer: changedCount,
    about: "bring all messages of a topic forward that wait for their next attempt",
  },
  preview: {
    ...widely,
    path: "/s/:source/previews",
    audit: "preview",
    body: previewBody,
    answer: preview,
    about: "which messages a change would mean; resend, archive and delete need the role admin",
  },
  startOperation: {
    ...widely,
    path: "/s/:source/operations",
    audit: "operation start",
    body: startBody,
    answer: operationAnswer,
    about: "change the messages of one's own preview; sent twice it is the same operation",
  },
  operations: {
    ...lookFiltered,
    path: "/s/:source/operations",
    answer: operationList,
    about: "changes of many messages that this process of the console works on or has ended, the newest first",
  },
  operation: {
    ...look,
    path: "/s/:source/operations/:operation",
    answer: operationDetail,
    about: "how far one is, and what it left as it was",
  },
  cancelOperation: {
    ...change,
    path: "/s/:source/operations/:operation/cancel",
    audit: "operation cancel",
    body: reasonBody,
    answer: operationAnswer,
    about: "end it behind its batch; what is changed stays so",
  },
} as const satisfies Readonly<Record<string, Route>>;
