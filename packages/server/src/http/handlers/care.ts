import { examine, type Unconfirmed } from "rowpost/admin";
import { createShared, type Shared } from "../../shared-answer.ts";
import type { Source } from "../../source.ts";
import type { ConsoleParts, HandlersOf } from "../call.ts";
import { languageOf } from "../problem.ts";
import type { AnswerOf } from "../routes.ts";

const UNCONFIRMED_MS = 2_000;
/** How long an examination is reused. */
const DOCTOR_MS = 3_000;
const SHOWN = 200;

type Examined = Awaited<ReturnType<typeof examine>> & { readonly tookMs: number; readonly asOf: string };

/** One examination for all viewers, and never two at once. */
export function careHandlers({ sources }: ConsoleParts): HandlersOf<"unconfirmed" | "doctor"> {
  const unconfirmed = new Map<string, Shared<AnswerOf<"unconfirmed">>>();
  const examined = new Map<string, Shared<Examined>>();
  for (const source of sources) {
    unconfirmed.set(
      source.name,
      createShared(UNCONFIRMED_MS, () => readUnconfirmed(source)),
    );
    examined.set(
      source.name,
      createShared(DOCTOR_MS, () => examineNow(source)),
    );
  }

  return {
    unconfirmed: async ({ source }) => ({ json: await of(unconfirmed, source)() }),

    async doctor({ request, source }) {
      const { asOf, found, server, tookMs } = await of(examined, source)();
      const language = languageOf(request.headers.get("accept-language"));
      return {
        json: {
          server,
          found: found.map(({ command, zh, ...en }) => ({
            ...en,
            ...(language === "zh" ? zh : {}),
            command,
          })),
          tookMs,
          asOf,
        },
        headers: { "content-language": language, vary: "accept-language" },
      };
    },
  };
}

function of<T>(shared: ReadonlyMap<string, Shared<T>>, { name }: Source): Shared<T> {
  const found = shared.get(name);
  if (found === undefined) throw new Error(`no source ${name}`);
  return found;
}

async function examineNow({ database, layout }: Source): Promise<Examined> {
  const asOf = new Date().toISOString();
  const begunMs = performance.now();
  const examination = await examine({ database, layout });
  return { ...examination, tookMs: Math.round(performance.now() - begunMs), asOf };
}

async function readUnconfirmed(source: Source): Promise<AnswerOf<"unconfirmed">> {
  const found = await source.search((admin) => admin.unconfirmed({ limit: SHOWN }));
  const store = source.database.reconcileStore({ layout: source.layout });
  try {
    const { clock, unknown } = await store.view(async (view) => ({
      clock: await view.clock(),
      unknown: await view.unknownConfirmations(SHOWN),
    }));
    const usual = new Map(found.consumers.map(({ consumers, type }) => [type, consumers]));
    return {
      types: typesOf(found),
      items: found.messages.map(({ confirmedBy, ...message }) => ({
        ...message,
        confirmedBy: [...confirmedBy],
        missing: (usual.get(message.type) ?? []).filter((consumer) => !confirmedBy.includes(consumer)),
      })),
      more: found.more,
      unknown: unknown.map((each) => ({ ...each })),
      asOf: new Date(clock).toISOString(),
    };
  } finally {
    await store.close();
  }
}

/** Those with the most overdue messages first. */
function typesOf({ consumers, counts }: Unconfirmed): AnswerOf<"unconfirmed">["types"] {
  const names = [...new Set(counts.map(({ type }) => type))];
  return names.map((type) => {
    const count = (overdue: boolean) => {
      const one = counts.find((each) => each.type === type && each.overdue === overdue);
      const relation = one?.atLeast === true ? ("gte" as const) : ("eq" as const);
      return { value: one?.count ?? 0, relation };
    };
    const known = consumers.find((each) => each.type === type)?.consumers ?? [];
    return { type, overdue: count(true), waiting: count(false), consumers: [...known] };
  });
}
