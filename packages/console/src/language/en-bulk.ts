/** Words of changes that mean many messages. */
export const bulk = {
  title: "Operations",
  here: "What this process of the console has started since it runs. One that ended with its process stands in the audit as begun and no more: start it again, and it means what is not changed yet.",
  interrupted: "What has begun",
  none: "No change of many messages yet. Failures by cause offers to retry all of one cause.",
  means: (count: string) =>
    `${count} messages will be changed. Messages that come later are left out, and one that somebody changes meanwhile stays as it is and is counted as left.`,
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
    ...{ preview: "preview", running: "running" },
    ...{ done: "done", cancelled: "cancelled", failed: "failed" },
  },
  sum: (changed: string, total: string) => `${changed} of ${total} changed`,
  conflicts: (count: string) => `${count} left as they were: changed by somebody else`,
  vanished: (count: string) => `${count} are gone`,
  cancel: "Cancel",
  aboutCancel: "It ends behind the batch that runs. What is changed stays so; the rest is left as it is.",
  cancelled: "It is cancelled.",
};
