/** Words of changes that mean many messages. */
export const bulk = {
  title: "Operations",
  none: "No change of many messages yet. Failures by cause offers to retry all of one cause.",
  means: (count: string) =>
    `It means ${count} messages, as they are now. One that somebody changes meanwhile is left as it is, and told.`,
  pace: "Pace",
  perSecond: (rate: string) => `at most ${rate} a second`,
  start: "Start",
  started: "It has started.",
  columns: {
    ...{ started: "Started", what: "What", state: "State", progress: "Progress" },
    ...{ who: "Who", reason: "Reason", actions: "Actions" },
  },
  kinds: {
    ...{ retry: "Retry failed ones", resend: "Send again", suspend: "Suspend" },
    ...{ resume: "Resume", archive: "Archive", delete: "Delete" },
  },
  states: {
    ...{ preview: "preview", running: "running", paused: "paused" },
    ...{ done: "done", cancelled: "cancelled", failed: "failed" },
  },
  sum: (changed: string, total: string) => `${changed} of ${total} changed`,
  conflicts: (count: string) => `${count} left as they were: changed by somebody else`,
  vanished: (count: string) => `${count} are gone`,
  moves: { pauseOperation: "Pause", resumeOperation: "Go on", cancelOperation: "Cancel" },
  aboutMoves: {
    pauseOperation: "It rests after the batch that runs, until somebody lets it go on.",
    resumeOperation: "It goes on with the messages that are left.",
    cancelOperation: "It ends after the batch that runs. What is changed stays so; the rest is left as it is.",
  },
  moved: { pauseOperation: "It is paused.", resumeOperation: "It goes on.", cancelOperation: "It is cancelled." },
};
