/** Inspects a table and reports how rowpost can use it. Writes nothing into the database. */
import type { Database } from "rowpost";
import type { MessageState, Session } from "rowpost/admin";
import { InputError } from "../failure.ts";
import type { Say } from "../language.ts";
import { type Catalog, clocksOf, readCatalog, type StateValue, valuesOf } from "./catalog.ts";
import { clockOf } from "./clock.ts";
import { type Mapping, mapColumns, type Property } from "./mapping.ts";
import { explained, tableLayout } from "./plans.ts";
import { adviceSql, featuresOf, type LayoutFile, layoutFileOf, mustFix, notesOf, takeOver } from "./proposal.ts";
import { completeStates, proposedStates, stateProblems } from "./states.ts";

export interface AdoptOptions {
  readonly table: string;
  readonly schema: string | undefined;
  readonly states: Partial<Record<MessageState, string | number>>;
  readonly columns: ReadonlyMap<Property, string>;
  readonly clock: "utc" | "server" | undefined;
  readonly file: string;
  readonly say: Say;
}

export interface Adoption {
  readonly table: string;
  readonly server: string;
  readonly rows: number;
  readonly columns: readonly string[];
  readonly values: readonly string[];
  readonly features: { readonly kept: readonly string[]; readonly lost: readonly string[] };
  readonly questions: readonly string[];
  readonly mustFix: readonly string[];
  readonly advice: readonly string[];
  readonly notes: readonly string[];
  readonly explain: readonly string[];
  readonly layout: LayoutFile | undefined;
  readonly plan: readonly string[];
}

/** Throws {@link InputError} for a table or column that is not there. */
export async function adopt(database: Database, options: AdoptOptions): Promise<Adoption> {
  // In the server's time zone, to compare rows with both clocks.
  const session = await database.connect({ purpose: "tool", clock: "server", stopsOnServer: true });
  try {
    const found = await look(session, database.dialect, options);
    const layout = found.layout && tableLayout(found.layout);
    const unfit = layout === undefined ? [] : await database.doctor({ layout }).tableProblems();
    const mustFix = [...found.mustFix, ...unfit];
    const plan = takeOver(options, mustFix.length > 0);
    return { ...found, mustFix, plan, explain: await explained(database, found, { layout, say: options.say }) };
  } finally {
    await session.close();
  }
}

async function look(
  session: Session,
  dialect: Catalog["dialect"],
  options: AdoptOptions,
): Promise<Omit<Adoption, "explain" | "plan">> {
  const { say, schema, table } = options;
  const catalog = await readCatalog(session, { dialect, schema, table });
  if (catalog === undefined) throw new InputError(`there is no table ${table} that this user can see`);
  for (const [property, column] of options.columns) {
    if (catalog.columns.some(({ name }) => name === column)) continue;
    throw new InputError(`--column ${property}=${column}: ${table} has no such column`);
  }
  const mapping = mapColumns(catalog, options.columns);
  const stateColumn = catalog.columns.find(({ name }) => name === mapping.columns.get("state"));
  const values = stateColumn === undefined ? [] : await valuesOf(session, catalog, stateColumn.name);
  const proposed = proposedStates(values, stateColumn?.comment ?? "");
  const clock = await clockFor(session, catalog, mapping, options);
  const questions = [
    ...mapping.asked.map(({ candidates, property }) => columnQuestion(say, property, candidates)),
    ...(stateColumn === undefined ? [] : stateQuestions(options, values, proposed)),
    ...(clock.clock === undefined
      ? [
          say(
            `whose time are the instants? --clock utc or --clock server; ${clock.why}`,
            `时间列是谁的时间？--clock utc 或 --clock server；${clock.why}`,
          ),
        ]
      : []),
  ];
  const complete = questions.length === 0 ? completeStates(options.states, values) : undefined;
  return {
    table,
    server: `${session.server.product} ${session.server.version}`,
    rows: values.reduce((sum, { count }) => sum + count, 0),
    columns: [...mapping.columns].map(([property, column]) => `${property} = ${column}`),
    values: values.map(({ count, value }) => valueText(say, value, count)),
    features: featuresOf(mapping, say),
    questions,
    mustFix: mustFix(catalog, mapping, { states: complete?.states, say }),
    advice: adviceSql(catalog, mapping),
    notes: [
      ...notesOf(catalog, mapping, { added: complete?.added ?? [], say }),
      say(`clock: ${clock.why}`, `时钟：${clock.why}`),
    ],
    layout:
      complete === undefined || clock.clock === undefined
        ? undefined
        : layoutFileOf(catalog, mapping, { clock: clock.clock, states: complete.states }),
  };
}

function columnQuestion(say: Say, property: Property, candidates: readonly string[]): string {
  const option = `--column ${property}=COLUMN`;
  return candidates.length === 0
    ? say(
        `which column is ${property}? ${option}; none fits: it has to be added`,
        `${property} 是哪一列？${option}；没有合适的：需要加一列`,
      )
    : say(
        `which column is ${property}? ${option} (${candidates.join(", ")}?)`,
        `${property} 是哪一列？${option}（${candidates.join(", ")}？）`,
      );
}

function valueText(say: Say, value: StateValue["value"], count: number): string {
  return count === 0
    ? say(`${value}: older rows only`, `${value}：只在较旧的行里`)
    : say(`${value}: ${count} rows`, `${value}：${count} 行`);
}

function stateQuestions(
  { say, states }: AdoptOptions,
  values: readonly StateValue[],
  proposed: ReturnType<typeof proposedStates>,
): string[] {
  const problems = stateProblems(states, values, say);
  if (problems.length === 0) return [];
  const flags = [...proposed]
    .filter(([, state]) => state !== undefined)
    .map(([value, state]) => `--state ${state}=${value}`);
  if (flags.length === 0) return problems;
  const options = flags.join(" ");
  return [
    ...problems,
    say(`if their names and the comment say so: ${options}`, `如果名称和注释的意思如此：${options}`),
  ];
}

async function clockFor(
  session: Session,
  catalog: Catalog,
  { columns }: Mapping,
  { clock, say }: AdoptOptions,
): Promise<ReturnType<typeof clockOf>> {
  if (clock !== undefined) return { clock, why: say(`${clock}, as it was said`, `${clock}，按所说`) };
  const created = catalog.columns.find(({ name }) => name === columns.get("gmtCreate"));
  // The created column has to be known first.
  if (created === undefined) return { clock: "utc", why: say("not known before its column", "要先知道是哪一列") };
  return clockOf(await clocksOf(session, catalog, created.name), { type: created.type, dialect: catalog.dialect, say });
}
