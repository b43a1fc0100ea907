/** All pages of a message table; that of a message has its id in the address. */
export const PAGES = [
  ...(["overview", "messages", "failures", "topics", "relays", "operations"] as const),
  ...(["queue", "unconfirmed", "alerts", "doctor", "audit"] as const),
];
