/** Looks at a table and says how rowpost can work on it. It writes nothing into the database. */
import type { Database } from "rowpost";
import type { MessageState, Session } from "rowpost/admin";
import { InputError } from "../cli/arguments.ts";
import { type Catalog, clocksOf, readCatalog, type StateValue, valuesOf } from "./catalog.ts";
import { clockOf } from "./clock.ts";
import { type Mapping, mapColumns, type Property } from "./mapping.ts";
import { explained, tableLayout } from "./plans.ts";
import { adviceSql, featuresOf, type LayoutFile, layoutFileOf, mustFix, notesOf, takeOver } from "./proposal.ts";
import { completeStates, proposedStates, stateProblems } from "./states.ts";

/** What the user has said. */
export interface AdoptOptions {
  readonly table: string;
  readonly schema: string | undefined;
  readonly states: Partial<Record<MessageState, string | number>>;
  readonly columns: ReadonlyMap<Property, string>;
  readonly clock: "utc" | "server" | undefined;
  /** The layout's file in the plan. */
  readonly file: string;
}

/** What was found. Texts are for people. */
export interface Adoption {
  readonly table: string;
  readonly server: string;
  /** That were looked at. */
  readonly rows: number;
  readonly columns: readonly string[];
  readonly values: readonly string[];
  readonly features: { readonly kept: readonly string[]; readonly lost: readonly string[] };
  /** Nothing is guessed instead. */
  readonly questions: readonly string[];
  readonly mustFix: readonly string[];
  readonly advice: readonly string[];
  readonly notes: readonly string[];
  readonly explain: readonly string[];
  /** Undefined while there are questions. */
  readonly layout: LayoutFile | undefined;
  readonly plan: readonly string[];
}

/** Throws {@link InputError} for a table or column that is not there. */
export async function adopt(database: Database, options: AdoptOptions): Promise<Adoption> {
  // In the server's own zone: rows are compared with both clocks.
  const session = await database.connect({ purpose: "tool", clock: "server", stopsOnServer: true });
  try {
    const found = await look(session, database.dialect, options);
    const layout = found.layout && tableLayout(found.layout);
    const unfit = layout === undefined ? [] : await database.doctor({ layout }).tableProblems();
    const mustFix = [...found.mustFix, ...unfit];
    const plan = takeOver(options.file, mustFix.length > 0);
    return { ...found, mustFix, plan, explain: await explained(database, found, layout) };
  } finally {
    await session.close();
  }
}

async function look(
  session: Session,
  dialect: Catalog["dialect"],
  options: AdoptOptions,
): Promise<Omit<Adoption, "explain" | "plan">> {
  const { schema, table } = options;
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
    ...mapping.asked.map(
      ({ candidates, property }) =>
        `which column is ${property}? --column ${property}=COLUMN${candidates.length === 0 ? "; none fits: it has to be added" : ` (${candidates.join(", ")}?)`}`,
    ),
    ...(stateColumn === undefined ? [] : stateQuestions(options, values, proposed)),
    ...(clock.clock === undefined ? [`whose time are the instants? --clock utc or --clock server; ${clock.why}`] : []),
  ];
  const complete = questions.length === 0 ? completeStates(options.states, values) : undefined;
  return {
    ...{ table, server: `${session.server.product} ${session.server.version}` },
    rows: values.reduce((sum, { count }) => sum + count, 0),
    columns: [...mapping.columns].map(([property, column]) => `${property} = ${column}`),
    values: values.map(({ count, value }) => `${value}: ${count === 0 ? "older rows only" : `${count} rows`}`),
    features: featuresOf(mapping),
    ...{ questions, mustFix: mustFix(catalog, mapping, complete?.states), advice: adviceSql(catalog, mapping) },
    notes: [...notesOf(catalog, mapping, complete?.added ?? []), `clock: ${clock.why}`],
    layout:
      complete === undefined || clock.clock === undefined
        ? undefined
        : layoutFileOf(catalog, mapping, { clock: clock.clock, states: complete.states }),
  };
}

function stateQuestions(
  { states }: AdoptOptions,
  values: readonly StateValue[],
  proposed: ReturnType<typeof proposedStates>,
): string[] {
  const problems = stateProblems(states, values);
  if (problems.length === 0) return [];
  const flags = [...proposed]
    .filter(([, state]) => state !== undefined)
    .map(([value, state]) => `--state ${state}=${value}`);
  return [...problems, ...(flags.length === 0 ? [] : [`if their names and the comment say so: ${flags.join(" ")}`])];
}

async function clockFor(
  session: Session,
  catalog: Catalog,
  { columns }: Mapping,
  { clock }: AdoptOptions,
): Promise<ReturnType<typeof clockOf>> {
  if (clock !== undefined) return { clock, why: `${clock}, as it was said` };
  const created = catalog.columns.find(({ name }) => name === columns.get("gmtCreate"));
  // Which column it is has to be said first.
  if (created === undefined) return { clock: "utc", why: "not known before its column" };
  return clockOf(await clocksOf(session, catalog, created.name), created, catalog);
}
