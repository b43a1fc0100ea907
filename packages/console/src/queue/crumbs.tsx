import { queueWords } from "../language/queue.ts";
import { queueHref } from "./places.ts";

interface CrumbsProps {
  readonly source: string;
  readonly topic?: string;
}

export function Crumbs({ source, topic }: CrumbsProps) {
  return (
    <p class="crumbs">
      <span>
        <a href={queueHref(source)}>{queueWords.value.title}</a>
        {topic !== undefined && (
          <>
            {" / "}
            <a href={queueHref(source, { topic })}>{topic}</a>
          </>
        )}
      </span>
    </p>
  );
}
