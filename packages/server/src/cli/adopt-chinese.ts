/** `rowpost adopt` in Chinese, by the English texts. */
import { replaced } from "./doctor-chinese.ts";

export const ADOPT_CHINESE: Readonly<Record<string, string>> = {
  "look at a message table that is there already, and write the layout that describes it":
    "查看一张已有的消息表，写出描述它的表结构文件",
  "the table, NAME or SCHEMA.NAME": "表，写作 表名 或 SCHEMA.表名",
  "what a value means, such as pending=0; may be given several times": "某个值是什么状态，例如 pending=0；可以写多次",
  "which column is which, such as topic=channel; may be given several times":
    "哪一列是什么，例如 topic=channel；可以写多次",
  "whose time the instants are": "时间列是 UTC 还是服务器自己的时间",
  "write the layout to this file; nothing else is written, ever": "把表结构写到这个文件；除此之外什么都不写",
  "It reads the catalog and the newest 10,000 rows. What the values of the state column mean it never":
    "它读取数据字典和最新的 10,000 行。状态列的值是什么意思，它从不",
  "guesses: it lists them with their counts, and ends with exit code 2 until --state says it.":
    "猜测：列出每个值和行数，在 --state 说明之前以退出码 2 结束。",
  "Exit codes: 0 ready, 1 something must be mended first, 2 something must be said first.":
    "退出码：0 就绪；1 有些地方要先修好；2 有些事情要先说明。",
};

const LOST: Readonly<Record<string, string>> = {
  "a relay that lost its connection proves that the old session is dead before it goes on: slower after a failure":
    "relay 断开连接后要先证明旧会话已结束才继续：故障后较慢",
  "no order per key": "没有按键的顺序",
  "a delay shares its column with the retries": "延时与重试共用一列",
  "no headers": "没有消息头",
  "JSON is told from text by looking": "靠内容区分 JSON 和文本",
  "the broker's receipt is not kept": "不保存中间件的回执",
  "when it was sent is not kept": "不保存发送时间",
  "when it was consumed is not kept": "不保存消费时间",
  "when the last attempt was is not kept": "不保存最近一次尝试的时间",
  "who wrote it is not kept": "不保存写入者",
  "who changed it by hand is not kept": "不保存人工修改者",
  "not kept": "不保存",
  "a message that crashes the relay each time is not found out": "找不出每次都使 relay 崩溃的消息",
};

/** Lines of the report; names, values and SQL stay as they are. */
const LINES: readonly (readonly [RegExp, string])[] = [
  [/^(.+) on (.+): which column is which$/, "$2 上的 $1：哪一列是什么"],
  [/^kept$/, "保留"],
  [/^lost$/, "失去"],
  [/^values of the state column \(newest (\d+) rows\)$/, "状态列的值（最新 $1 行）"],
  [/^must be said first$/, "要先说明"],
  [/^must be mended first$/, "要先修好"],
  [/^good to have$/, "最好有"],
  [/^to know$/, "须知"],
  [/^how a relay would look for messages$/, "relay 将怎样查找消息"],
  [/^layout \(--write FILE\.json writes it\)$/, "表结构（--write FILE.json 写入文件）"],
  [/^layout, written to (.+)$/, "表结构，已写入 $1"],
  [/^taking it over$/, "接管步骤"],
  [/^(.*): older rows only$/, "$1：只在较旧的行里"],
  [/^(.*): (\d+) rows$/, "$1：$2 行"],
  [
    /^which column is (\w+)\? (--column \w+=COLUMN); none fits: it has to be added$/,
    "$1 是哪一列？$2；没有合适的：需要加一列",
  ],
  [/^which column is (\w+)\? (.*)$/, "$1 是哪一列？$2"],
  [
    /^whose time are the instants\? --clock utc or --clock server; (.*)$/,
    "时间列是谁的时间？--clock utc 或 --clock server；$1",
  ],
  [/^say what these values mean, or change their rows first: (.*)$/, "请说明这些值的含义，或先改这些行：$1"],
  [/^if their names and the comment say so: (.*)$/, "如果名称和注释的意思如此：$1"],
  [
    /^no unique key over (\(.*?\)), so a message could be written twice: (.*)$/,
    "$1 上没有唯一键，同一条消息可能写入两次：$2",
  ],
  [/^(.*) must take NULL: (.*)$/, "$1 必须允许 NULL：$2"],
  [
    /^(.*) is (.*) and cannot hold (.*): widen it, or give other values with --state$/,
    "$1 是 $2，放不下 $3：加宽它，或用 --state 换成别的值",
  ],
  [/^(.*) is (.*): ids end at 2,147,483,647$/, "$1 是 $2：id 到 2,147,483,647 为止"],
  [
    /^(.*) must be given and rowpost does not know it: only your own programs can insert$/,
    "$1 必须给值而 rowpost 不认识它：只有你自己的程序能写入",
  ],
  [
    /^the table has no (.*) yet: they get values of their own in "states"$/,
    '表里还没有 $1：它们在 "states" 里得到自己的值',
  ],
  [/^clock: the column holds instants, whatever the zone$/, "时钟：该列保存的是时刻，与时区无关"],
  [/^clock: the server's own time is UTC$/, "时钟：服务器自己的时间就是 UTC"],
  [/^clock: (utc|server), as it was said$/, "时钟：$1，按所说"],
  [/^clock: the table has no rows$/, "时钟：表里没有行"],
  [/^clock: not known before its column$/, "时钟：要先知道是哪一列"],
  [/^clock: (.*)$/, "时钟：$1"],
  [/^the table has (\d+) rows: with so few a server may take no index$/, "表里有 $1 行：这么少时数据库可能不用索引"],
  [/^mended by: (.*) \(its plans can be seen once it is there\)$/, "这样修好：$1（建好后才能看到执行计划）"],
  [/^(scan|claim|settle|count): (.*)$/, "$1：$2"],
  [/^look for what nobody watches: (.*)$/, "查找无人看管的消息：$1"],
  [/^look for what falls due: (.*)$/, "查找到期的消息：$1"],
  [/^what could not be explained needs .*$/, "无法给出执行计划的语句需要 rowpost migrate 建的表：建好后再运行 adopt"],
  [/^mend what must be mended, in the order above$/, "按上面的顺序修好要先修好的"],
  [/^(rowpost migrate .*) {4}# .*$/, "$1    # 在旁边建表，不动你的表"],
  [/^switch the old job off, and wait until nothing is being sent any more$/, "停掉旧任务，等到不再有消息在发送"],
  [/^(rowpost relay .*) {4}# .*$/, "$1    # 还什么都不发；由 rowpost doctor 检查"],
];

/** A line of the report in Chinese. */
export function adoptLine(english: string): string {
  const [property = "", lost = ""] = english.split(": ");
  const why = LOST[lost];
  return why === undefined ? replaced(LINES, english) : `${property}：${why}`;
}
