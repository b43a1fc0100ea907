import { alerts } from "./en-alerts.ts";

/** Words of the pages for unconfirmed messages and the doctor; loaded with them. */
export const care = {
  alerts,
  unconfirmed: {
    title: "Unconfirmed messages",
    about: "Sent, and no consumer has said yet that it has them. A relay acts when the deadline has come.",
    none: "Nothing waits for a confirmation",
    noneText:
      "Messages of types with a confirm rule stand here from the broker's receipt until their consumers confirm.",
    types: {
      ...{ type: "Message type", overdue: "Past the deadline", waiting: "Deadline ahead" },
      consumers: "Consumers",
    },
    anyone: "any one",
    columns: {
      ...{ id: "Id", type: "Type", key: "Key", deadline: "Deadline", confirmed: "Confirmed by" },
      ...{ missing: "Missing", reason: "What a consumer reported", actions: "Actions" },
    },
    overdue: "past",
    guess: "Missing: who has confirmed others of the type lately, and not this one.",
    more: (count: string) => `The ${count} with the earliest deadlines; there are more.`,
    unknown: "Confirmations of unknown messages",
    unknownAbout: "What consumers said of messages that are not in the table or its archive; kept for a week.",
    noUnknown: "None.",
    unknownColumns: {
      ...{ last: "Last", times: "Times", type: "Type", key: "Key", consumer: "Consumer", said: "Said" },
      message: "Message",
    },
    consumed: "consumed",
    there: "there now: look",
    notThere: "not there",
    noName: "gave no name",
  },
  doctor: {
    title: "Doctor",
    about: "What keeps messages from going out or could lose them, and what mends it. Looking changes nothing.",
    again: "Examine again",
    busy: "Examining…",
    well: "Nothing is wrong",
    on: (server: string, ms: string) => `${server}, examined in ${ms} ms`,
    unreached: "the database could not be reached",
    severities: { error: "Error", warning: "Warning", note: "Note" },
    counts: {
      error: (count: number) => `${count} ${count === 1 ? "error" : "errors"}`,
      warning: (count: number) => `${count} ${count === 1 ? "warning" : "warnings"}`,
      note: (count: number) => `${count} ${count === 1 ? "note" : "notes"}`,
    },
    why: "What comes of it",
    mend: "What mends it",
    broker: "The broker is looked at by rowpost doctor --broker URL only.",
  },
};
