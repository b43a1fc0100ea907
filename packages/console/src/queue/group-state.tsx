import type { AnswerOf } from "rowpost-server/api";
import { queueWords } from "../language/queue.ts";

export type Group = AnswerOf<"queueGroups">["items"][number];

export function GroupState({ group: { partitions, paused } }: { readonly group: Group }) {
  const texts = queueWords.value;
  if (paused !== undefined)
    return (
      <>
        <span class="tag tag-held">{texts.paused}</span>
        <q class="reason"> {texts.pausedBy(paused.author, paused.reason)}</q>
      </>
    );
  const isRead = partitions.some(({ member }) => member !== undefined);
  return <span class={isRead ? "tag tag-good" : "tag"}>{isRead ? texts.runs : texts.idle}</span>;
}
