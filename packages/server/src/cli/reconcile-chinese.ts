/** The help of `rowpost reconcile` in Chinese, by its English texts. */
export const RECONCILE_CHINESE: Readonly<Record<string, string>> = {
  "compare business rows, messages, receipts and what consumers have handled; changes nothing":
    "核对业务数据、消息、回执和消费者处理过的消息；不改动任何数据",
  "the business rows that must have a message": "必须有消息的业务数据",
  "message types, several with commas; needed with --business-query":
    "消息类型，多个用逗号分隔；与 --business-query 一起使用时必须给出",
  "beginning of the window: 2026-11-21T08:00:00Z, a day, or how long ago (25h); default: a day before its end":
    "时间范围的开始：2026-11-21T08:00:00Z、某一天，或多久以前（25h）；默认为结束前一天",
  "its end; default: 10 minutes ago, or --slack": "时间范围的结束；默认为 10 分钟前，或 --slack 之前",
  "of the wall clock that :from and :to are compared with, such as Asia/Shanghai; default: the table's own clock":
    "与 :from、:to 比较的列用的是哪个时区的时间，例如 Asia/Shanghai；默认与消息表的时钟相同",
  "how far the times of a row and its message may be apart (default: 10m)":
    "业务数据与它的消息时间最多相差多少（默认 10m）",
  "how long finished messages are kept, archive included; 0: not at all; default: told by the oldest one":
    "完成的消息保留多久，归档也算在内；0 表示不保留；默认由最早的一条推断",
  "look up what consumers have handled (default: message_inbox)": "核对消费者处理过的消息（默认表 message_inbox）",
  "with --inbox: only what this consumer has handled": "与 --inbox 一起：只看这个消费者处理过的",
  "the effects of a consumer: a key that comes twice was consumed twice":
    "消费者产生的业务结果：同一个键出现两次，就是重复消费",
  "where inbox and effects are; default: --database": "消费去重表和业务结果所在的数据库；默认为 --database",
  "how findings are printed (default: table)": "结果的输出格式（默认 table）",
  "A query is one SELECT of yours that returns message_key, and message_type where --type names several;":
    "查询是你自己写的一条 SELECT，返回 message_key；--type 有多个时还要返回 message_type。",
  ":from and :to in it are the window. @FILE reads it from a file. It runs in a transaction that can":
    "其中的 :from 和 :to 是时间范围。@文件 表示从文件读取。查询在只读事务里执行，",
  "only read, the business query in the same one as the messages.": "业务查询与读取消息在同一个事务里。",
  "Exit codes: 0 nothing found, 3 something found, 1 nothing found but not all of it could be compared.":
    "退出码：0 没有发现问题；3 有发现；1 没有发现，但有一部分无法核对。",
};
