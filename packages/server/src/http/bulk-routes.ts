/** The part of the route table that means many messages. */
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
import type { Route } from "./route.ts";
import { reasonBody } from "./schemas.ts";

/** The preview, not a version, says what was seen. */
const widely = { method: "POST", changes: true } as const;
const look = { method: "GET" } as const;

export const BULK_ROUTES = {
  suspendScope: {
    limited: "filtered",
    ...widely,
    path: "/s/:source/suspensions",
    role: "operator",
    audit: "suspend rule",
    body: suspendScopeBody,
    answer: changedCount,
    about: "hold back all of a topic, a type, an ordering key or the relay, also what is still to come",
  },
  resumeScope: {
    limited: "filtered",
    ...widely,
    path: "/s/:source/suspensions/lift",
    role: "operator",
    audit: "resume rule",
    body: resumeScopeBody,
    answer: changedCount,
    about: "lift such a rule, and let the messages go that it held back",
  },
  resetBackoff: {
    limited: "filtered",
    ...widely,
    path: "/s/:source/reset-backoff",
    role: "operator",
    audit: "reset backoff",
    body: resetBackoffBody,
    answer: changedCount,
    about: "bring all messages of a topic forward that wait for their next attempt",
  },
  preview: {
    limited: "filtered",
    ...widely,
    path: "/s/:source/previews",
    role: "operator",
    audit: "preview",
    body: previewBody,
    answer: preview,
    about: "which messages a change would mean; resend, archive and delete need the role admin",
  },
  startOperation: {
    limited: "filtered",
    ...widely,
    path: "/s/:source/operations",
    role: "operator",
    audit: "operation start",
    body: startBody,
    answer: operationAnswer,
    about: "change the messages of one's own preview; sent twice it is the same operation",
  },
  operations: {
    limited: "filtered",
    ...look,
    path: "/s/:source/operations",
    role: "reader",
    answer: operationList,
    about: "changes of many messages that this process of the console works on or has ended, the newest first",
  },
  operation: {
    ...look,
    path: "/s/:source/operations/:operation",
    role: "reader",
    answer: operationDetail,
    about: "how far one is, and what it left as it was",
  },
  cancelOperation: {
    ...widely,
    path: "/s/:source/operations/:operation/cancel",
    role: "operator",
    audit: "operation cancel",
    body: reasonBody,
    answer: operationAnswer,
    about: "end it behind its batch; what is changed stays so",
  },
} as const satisfies Readonly<Record<string, Route>>;
