import { useSignal } from "@preact/signals";
import type { AnswerOf } from "rowpost-server/api";
import { announce } from "../announce.ts";
import { type ApiProblem, call } from "../api/client.ts";
import { problemOf } from "../api/polling.ts";
import { Instant } from "../components/instant.tsx";
import { ProblemBox } from "../components/problem.tsx";
import { RouteButton } from "../components/reason-dialog.tsx";
import { TableHead } from "../components/table-head.tsx";
import { careWords } from "../language/care.ts";

type Channel = AnswerOf<"alerts">["channels"][number];
type Answer = AnswerOf<"testChannel">;

interface ChannelsProps {
  readonly channels: readonly Channel[];
  readonly source: string;
}

export function Channels({ channels, source }: ChannelsProps) {
  const { alerts: texts } = careWords.value;
  const { channelColumns: columns } = texts;
  const hasUnknown = channels.some(({ canTest }) => !canTest);
  return (
    <section>
      <h2>{texts.channels}</h2>
      {channels.length === 0 ? (
        <p class="quiet">{texts.noChannels}</p>
      ) : (
        <table class="rows">
          <TableHead columns={columns} names={["name", "last", "answer", "test"]} />
          <tbody>
            {channels.map((channel) => (
              <ChannelRow key={channel.name} channel={channel} source={source} />
            ))}
          </tbody>
        </table>
      )}
      {hasUnknown && <p class="hint">{texts.noTest}</p>}
    </section>
  );
}

function ChannelRow({ channel, source }: { readonly channel: Channel; readonly source: string }) {
  const tested = useSignal<Answer | undefined>(undefined);
  const problem = useSignal<ApiProblem | undefined>(undefined);
  const isBusy = useSignal(false);
  const { alerts: texts } = careWords.value;
  const { channelColumns: columns } = texts;
  const last = tested.value ?? channel.last;
  async function test(): Promise<void> {
    isBusy.value = true;
    problem.value = undefined;
    try {
      const { answer } = await call("testChannel", { source, channel: channel.name });
      tested.value = answer;
      announce(answer.ok ? texts.taken(channel.name) : texts.refused(channel.name));
    } catch (error) {
      problem.value = problemOf(error);
    } finally {
      isBusy.value = false;
    }
  }
  return (
    <tr>
      <th scope="row">{channel.name}</th>
      <td data-label={columns.last}>
        <Instant at={last?.at} />
      </td>
      <td data-label={columns.answer}>
        {last === undefined ? (
          <span class="quiet">–</span>
        ) : (
          <span class={`tag ${last.ok ? "tag-good" : "tag-bad"}`}>{last.ok ? texts.ok : last.answer}</span>
        )}
        {problem.value !== undefined && <ProblemBox problem={problem.value} />}
      </td>
      <td data-label={columns.test}>
        {channel.canTest ? (
          <RouteButton
            route="testChannel"
            least="admin"
            label={isBusy.value ? texts.testing : texts.test}
            of={channel.name}
            open={() => {
              if (!isBusy.value) void test();
            }}
          />
        ) : (
          <span class="quiet">–</span>
        )}
      </td>
    </tr>
  );
}
