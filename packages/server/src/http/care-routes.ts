import { examination, unconfirmedList } from "./care-schemas.ts";
import { look, type Route } from "./route.ts";

export const CARE_ROUTES = {
  unconfirmed: {
    ...look,
    path: "/s/:source/unconfirmed",
    answer: unconfirmedList,
    about: "sent messages that wait for a confirmation, and confirmations of messages that are not there",
  },
  doctor: {
    ...look,
    path: "/s/:source/doctor",
    answer: examination,
    about: "look for what keeps messages from going out or could lose them, and what mends it",
  },
} as const satisfies Readonly<Record<string, Route>>;
