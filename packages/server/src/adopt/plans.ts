import { ConfigurationError, createLayout, type Database, type TableLayout } from "rowpost";
import type { StatementPlan } from "rowpost/admin";
import type { Say } from "../language.ts";
import type { LayoutFile } from "./proposal.ts";

/** With fewer rows a server scans the table whatever the indexes. */
const FEW = 1_000;

export async function explained(
  database: Database,
  { advice, rows }: { readonly advice: readonly string[]; readonly rows: number },
  { layout, say }: { readonly layout: TableLayout | undefined; readonly say: Say },
): Promise<string[]> {
  if (layout === undefined) return [];
  const found = await database.doctor({ layout }).plans();
  const index = advice.find((each) => each.startsWith("CREATE INDEX"));
  const isShort = found.some(({ steps }) => steps.some(({ readsAll }) => readsAll));
  const isEarly = found.some(({ problem }) => problem !== undefined);
  return [
    ...found.map((plan) => lineOf(plan, say)),
    ...(isShort && rows < FEW
      ? [
          say(
            `the table has ${rows} rows: with so few a server may take no index`,
            `表里有 ${rows} 行：这么少时数据库可能不用索引`,
          ),
        ]
      : []),
    ...(isShort && index !== undefined
      ? [
          say(
            `mended by: ${index} (its plans can be seen once it is there)`,
            `这样修好：${index}（建好后才能看到执行计划）`,
          ),
        ]
      : []),
    ...(isEarly
      ? [
          say(
            "what could not be explained needs the tables that rowpost migrate makes: run adopt again then",
            "无法给出执行计划的语句需要 rowpost migrate 建的表：建好后再运行 adopt",
          ),
        ]
      : []),
  ];
}

/** Undefined until the problems are fixed. */
export function tableLayout({ columns, ...rest }: LayoutFile): TableLayout | undefined {
  const there = Object.entries(columns).map(([name, column]) => [name, column ?? undefined]);
  try {
    return createLayout({ ...rest, columns: Object.fromEntries(there) });
  } catch (error) {
    if (error instanceof ConfigurationError) return undefined;
    throw error;
  }
}

const STATEMENTS: Readonly<Record<string, string>> = {
  "look for what nobody watches": "查找无人看管的消息",
  "look for what falls due": "查找到期的消息",
};

function lineOf({ problem, statement, steps }: StatementPlan, say: Say): string {
  const about = say(`${statement}: `, `${STATEMENTS[statement] ?? statement}：`);
  if (problem !== undefined) return about + say(`could not be explained: ${problem}`, `无法给出执行计划：${problem}`);
  if (steps.length === 0) return about + say("nothing can match now, so that no way is chosen", "现在没有能匹配的行");
  return about + [...new Set(steps.map((step) => wayOf(step, say)))].join("; ");
}

function wayOf({ index, readsAll, rows }: StatementPlan["steps"][number], say: Say): string {
  const about = rows === undefined ? "" : say(`, about ${rows} rows`, `，约 ${rows} 行`);
  if (!readsAll) return say(`by ${index ?? "its place"}${about}`, `按 ${index ?? "位置"}${about}`);
  const whole = index === undefined ? say("table", "表") : say(`index ${index}`, `索引 ${index}`);
  return say(`reads the whole ${whole}${about}`, `读整个${whole}${about}`);
}
