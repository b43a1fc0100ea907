/** The help of `rowpost adopt` in Chinese, by the English texts. */
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
