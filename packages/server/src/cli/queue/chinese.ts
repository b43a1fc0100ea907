export const QUEUE_CHINESE: Readonly<Record<string, string>> = {
  "the message queue stored in SQL: topics, messages, consumer groups": "存在 SQL 里的消息队列：主题、消息、消费组",
  "list the topics": "列出主题",
  "make a topic and its tables, and the queue's own where they are missing; one that is there stays as it is":
    "创建主题和它的表，队列自己的表没有时也一并创建；已有的主题保持原样",
  "1 to 31 characters of a-z, 0-9 and _": "1 到 31 个字符：a-z、0-9 和 _",
  "1 to 64; they may grow later, and never shrink": "1 到 64；以后可以增加，不能减少",
  "months that messages are kept, or ever": "消息保留几个月，或 ever（一直保留）",
  "give a topic more partitions, or another retention": "给主题增加分区，或修改保留时间",
  "Messages with an ordering key go to new partitions once no group has unread messages: run it again":
    "所有消费组都读完之后，带顺序键的消息才会分到新分区：",
  "then, without options.": "到时再不带选项执行一次。",
  "remove a topic with its messages, records, groups and dead letters":
    "删除主题，连同它的消息、消费记录、消费组和死信",
  "really: nothing of it can be had back": "确认删除：删掉的找不回来",
  "append a message, or one for each line of a file": "写入一条消息，或文件的每一行写入一条",
  "JSON; any text with --content-type, such as text/plain":
    "JSON；加上 --content-type（例如 text/plain）可以是任何文本",
  "read the body from a file; - is standard input": "从文件读取消息体；- 是标准输入",
  "with --file: each line that is not empty is a message": "与 --file 一起：每个非空行是一条消息",
  "business key to search by": "业务键，可用来查找",
  "message type, such as order.created": "消息类型，例如 order.created",
  "messages with the same one are handled in their order": "顺序键：相同的消息按先后顺序处理",
  "a header; may be given several times": "消息头；可以写多次",
  "media type of the body (default: application/json)": "消息体的媒体类型（默认 application/json）",
  "deliver it only after this time (30s, 2h)": "过这么久才投递（30s、2h）",
  "show what is appended to a topic, until Ctrl-C; no group is needed, and nobody's progress moves":
    "显示主题里新写入的消息，直到 Ctrl-C；不需要消费组，也不影响任何人的进度",
  "start, end, an id, an instant (2026-11-21T08:00:00Z), or how long ago (2h)":
    "start、end、一个 id、一个时刻（2026-11-21T08:00:00Z），或多久以前（2h）",
  "end after this many messages": "显示这么多条之后结束",
  "With --json each message is one line.": "加上 --json，每条消息一行。",
  "search a topic, the newest first; says what was searched, and whether that was all":
    "查询一个主题，从新到旧；会说明查了哪些月、是否查全",
  "with this business key (along an index)": "业务键等于它（走索引）",
  "this message": "这条消息",
  "with this header (looks at every message of the range)": "带这个消息头（会看过范围内的每条消息）",
  "of this message type (looks at every message of the range)": "是这个消息类型（会看过范围内的每条消息）",
  "appended then or later: 2026-11-21T08:00:00Z, or how long ago (2h)":
    "从这时起写入的：2026-11-21T08:00:00Z，或多久以前（2h）",
  "appended before": "在这之前写入的",
  "messages of a page (default: 50)": "每页条数（默认 50）",
  "the page behind this id": "从这个 id 往后的一页",
  "answer with what was found by then (default: 5s)": "到时间就返回已查到的（默认 5s）",
  "show a message with its body: who consumed it, when, from where, at which attempt":
    "显示一条消息和消息体：谁在什么时候、从哪里、第几次消费了它",
  "the message": "消息的 id",
  "move a consumer group back, so that messages come again, or ahead; its consumers may run":
    "把消费组往回移（消息会再来一次）或往前移；消费者可以照常运行",
  "the consumer group": "消费组",
  "start, end, an id, an instant or how long ago (2h), -N (so many messages back), or group:NAME":
    "start、end、一个 id、一个时刻或多久以前（2h）、-N（往回这么多条），或 group:名字",
  "take the last rewind of the group back": "撤销这个组的上一次回拨",
  "change nothing, and count what would come again": "什么都不改，只计算会再来多少条",
  "begin behind dropped months instead of being refused": "遇到已删除的月份不拒绝，从其后开始",
  "drop the tables of a month that is over, unless a group still needs it":
    "删除一个已经过去的月份的表；还有消费组需要它时不删",
  "year and month, such as 202601": "年和月，例如 202601",
  "every month past the topic's retention, instead of one": "不是一个月，而是所有超过主题保留期的月份",
  "write it there first, as NDJSON with gzip": "先归档到这个目录（NDJSON，gzip）",
  "also when a group still needs it: its unread messages are lost to that group":
    "即使还有消费组需要它：那个组没读的消息就丢了",
  "Exit code 1: a month past its retention is still there.": "退出码 1：还有超过保留期的月份没删。",
  "show the consumer groups of a topic: lag, members, what stands at the head, redeliveries, dead letters":
    "显示主题的消费组：积压、成员、最前面的消息、待重投的消息和死信",
  "only this consumer group": "只看这个消费组",
  "Counts are exact up to 10,000 a partition; 10000+ means at least so many.":
    "每个分区最多精确数到 10,000；10000+ 表示至少有这么多。",
  "why; kept with it": "原因；会一并记下",
  "who; kept with it (default: the user of the operating system)": "操作人；会一并记下（默认是操作系统的用户）",
  "let the members of a consumer group take nothing more until it is resumed; they may go on running":
    "暂停消费组：成员可以继续运行，但恢复之前不再取消息",
  "remove a consumer group that nobody reads with any more: its progress, redeliveries and dead letters":
    "删除不再有人使用的消费组：它的进度、待重投的消息和死信",
  "the consumer group; of a broadcast group@instance": "消费组；广播的写作 group@instance",
  "It is refused while a member lives: one that was killed counts for 30 seconds.":
    "还有成员活着时会被拒绝：被杀掉的成员 30 秒内仍算活着。",
  "let a paused consumer group go on where it was": "让暂停的消费组从原处继续",
  "let a consumer group never get a message: one that comes again, a dead letter, or its first unfinished one":
    "让消费组跳过一条消息：待重投的、死信，或第一条未完成的",
  "take a message back: consumer groups that have not begun with it skip it; then show it":
    "撤回一条消息：还没开始处理它的消费组会跳过它；然后显示这条消息",
  "A group that stands as unread or waiting skips it, unless a member has it in hand: show it again later.":
    "状态为 unread 或 waiting 的消费组会跳过它，除非某个成员已经拿到了它：过一会儿再看一次。",
  "list the dead letters of a consumer group, with their errors": "列出消费组的死信和错误",
  "part of the last error": "最近一次错误里的一段文字",
  "dead: given up; waiting: comes again": "dead：已放弃；waiting：等待重投",
  "only those behind this one: where the last list ended": "只列这个 id 之后的：上一页结束的地方",
  "all that match --error, or all there are": "符合 --error 的全部，或现有的全部",
  "deliver dead letters of a consumer group again, with all their attempts; what waits anyway, at once":
    "重投消费组的死信，次数重新计算；本来就在等待的立刻重投",
  "give dead letters of a consumer group up for good; a record says who did it":
    "彻底丢弃消费组的死信；消费记录写明是谁做的",
  "append a changed copy of a dead letter for its consumer group alone, and discard the old one":
    "把死信改好后作为副本写入，只投给这个消费组，并丢弃原来那条",
  "body of the copy: JSON": "副本的消息体：JSON",
  "look for messages below a group's progress without a record, a redelivery, a skip or a rewind":
    "查找消费组进度之前、却没有消费记录、重投、跳过或回拨的消息",
  "It only reads, and locks nothing; consumers may run. Exit code 1: a message is missing.":
    "只读，不加锁；消费者可以照常运行。退出码 1：有消息缺失。",
};
