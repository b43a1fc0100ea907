/** `rowpost doctor` in Chinese: its help by the English texts, and what it finds. */
import type { Diagnosis } from "rowpost/admin";

export const DOCTOR_CHINESE: Readonly<Record<string, string>> = {
  "look for what keeps messages from going out or could lose them, and say what mends it":
    "检查什么会让消息发不出去或可能丢失，并给出处理办法",
  "topics that go to another broker, as with rowpost relay": "发往其他中间件的主题，与 rowpost relay 相同",
  "It changes nothing. What it may not look at, it says. With --broker it looks whether that answers.":
    "它不改动任何数据；没有权限查看的会说明。给出 --broker 时也检查中间件是否有应答。",
  "Exit codes: 0 nothing is wrong, 1 errors, 3 warnings only, 2 wrong input.":
    "退出码：0 没有问题；1 有错误；3 只有警告；2 输入有误。",
};

/** What is found in a table or a setting, by the beginning or the whole of its English text. */
const WHAT: readonly (readonly [RegExp, string])[] = [
  [/^a session lock proves nothing here:.*$/, "这里的会话锁不能证明什么：是集群或代理，不是每个节点都看得到"],
  [/^migrations are missing: (.*)$/, "缺少迁移：$1"],
  [
    /^the tables have migration (\d+); this version of rowpost knows (\d+)$/,
    "表已迁移到 $1；这个版本的 rowpost 只认识到 $2",
  ],
  [/^the message table has no index that leads to the waiting.*$/, "消息表缺少按主题查找待发送消息的索引"],
  [/^the instants of the message table are in (.*), which.*$/, "消息表的时间按 $1 存储，这个时区一年内会变换偏移"],
  [
    /^(.*) of (.*) are timestamp without time zone, and sessions are in (.*)$/,
    "$2 的 $1 是不带时区的 timestamp，而会话的时区是 $3",
  ],
  [/^(.*) of (.*) are TIMESTAMP$/, "$2 的 $1 是 TIMESTAMP"],
  [/^(.*) has no unique key over (\(.*\))$/, "$1 在 $2 上没有唯一键"],
  [/^(\S+) of (.*) begins at the same number in every row$/, "$2 的每一行，$1 都从同一个数开始"],
  [/^the clock of the database is (\d+) ms ahead of .*$/, "数据库的时钟比这台机器快 $1 毫秒"],
  [/^the clock of the database is (\d+) ms behind .*$/, "数据库的时钟比这台机器慢 $1 毫秒"],
  [/^(.*): could not be looked at: (.*)$/s, "$1：无法查看：$2"],
  [/^(\w+) is (\S+|empty)$/, "$1 是 $2"],
  [/^(.*) is a table of (.*)$/, "$1 的存储引擎是 $2"],
  [/^the character set of (.*) is that of (.*)$/, "$1 的字符集是 $2"],
  [/^the encoding is (.*)$/, "数据库编码是 $1"],
  [/^this server is a replica$/, "这台服务器是从库"],
  [/^(.*) is UNLOGGED$/, "$1 是 UNLOGGED 表"],
  [/^row-level security is on for (.*), and.*$/, "$1 启用了行级安全，而这个角色受它约束"],
  [/^autovacuum is off for (.*)$/, "$1 关闭了 autovacuum"],
  [/^(.*) has (\d+) dead rows beside (\d+) living ones$/, "$1 有 $2 个死行，活行 $3 个"],
  [/^the oldest row of (.*) is (\d+) transactions old$/, "$1 最老的行已有 $2 个事务"],
  [/^(\d+) % of the ids of the message table are used up \((.*) of (.*)\)$/, "消息表的 id 已用掉 $1 %（$2 / $3）"],
  [
    /^a transaction of (.*) at (.*) \(thread (\d+)\) is open for (.*) s and has locked (.*) rows$/,
    "$1（来自 $2，线程 $3）的事务已打开 $4 秒，锁住 $5 行",
  ],
  [/^a transaction of (.*) \((.*)\) is open for (\d+) s$/, "$1（$2）的事务已打开 $3 秒"],
  [/^the history of InnoDB has (\d+) transactions.*$/, "InnoDB 的 history 有 $1 个事务没有清理（purge）"],
  [/^the replication slot (.*), which nobody reads, is (\d+) .*$/, "复制槽 $1 没有人读取，已落后 $2 个事务"],
  [/^(\d+) of (\d+) connections are in use$/, "$2 个连接已用掉 $1 个"],
  [/^the messages could not be counted: (.*)$/s, "无法统计消息：$1"],
  [/^no relay is running, and message (\d+) is due for (.*)$/, "没有 relay 在运行，消息 $1 已到期 $2"],
  [/^no relay is running$/, "没有 relay 在运行"],
  [/^(\d+) of (\d+) shards belong to no relay that is running$/, "$2 个分片中有 $1 个没有运行中的 relay"],
  [/^relays of the versions (.*) run side by side$/, "不同版本的 relay 在同时运行：$1"],
  [/^relays of this table take each other's messages: (.*)$/s, "这张表的 relay 会拿走彼此的消息：$1"],
  [/^the broker (.*) is away for (.*), says (.*?): (.*)$/s, "中间件 $1 已连不上 $2（$3 报告）：$4"],
  [/^the topic (.*) rests: (.*)$/s, "主题 $1 暂停投递：$2"],
  [/^failed for good: at least (\d+) messages?$/, "发送失败、不再重试的消息至少 $1 条"],
  [/^failed for good: (\d+) messages?$/, "发送失败、不再重试的消息有 $1 条"],
  [/^message (\d+) of (.*) is due for (.*) although a relay runs$/, "有 relay 在运行，主题 $2 的消息 $1 仍已到期 $3"],
  [/^(\w+) (.*) is suspended without an end, by (.*?): (.*)$/s, "$1 $2 已挂起且没有结束时间，操作人 $3：$4"],
  [/^the broker (.*?) cannot be used: (.*)$/s, "中间件 $1 不可用：$2"],
];

/** What comes of it. */
const WHY: Readonly<Record<string, string>> = {
  "relays and tools refuse to work over such a connection": "relay 和工具拒绝使用这样的连接",
  "neither relay nor tools can work": "relay 和工具都无法工作",
  "after the death of a relay its messages wait for the end of its lease (30 s) instead of one second":
    "relay 死掉后，它的消息要等租约到期（30 秒），而不是一秒",
  "relay and tools refuse to start": "relay 和工具拒绝启动",
  "parts of this version of rowpost have no tables": "这个版本的一部分功能没有表可用",
  "a newer version has made them, and this one cannot update them": "表由更新的版本创建，这个版本无法更新它们",
  "a topic that the broker refuses, with many messages, slows the others down":
    "中间件拒绝某个主题、而它积压很多时，会拖慢其他主题",
  "in the hour that comes twice, delays and retries may be an hour off": "在重复的那一小时里，延时和重试可能差一小时",
  "rowpost reads and writes UTC there, and what a program writes with now() is off by hours":
    "rowpost 在这些列里读写 UTC；程序用 now() 写入的会差几个小时",
  "a program whose session has another time_zone than the server writes delays that are off by hours":
    "会话的 time_zone 与服务器不同的程序，写入的延时会差几个小时",
  "a message may stand in it twice, and is sent twice; enqueue refuses to work without it":
    "同一条消息可能在表里出现两次并发送两次；没有它，enqueue 拒绝写入",
  "after a fail-over that lost commits, the receipt of a lost message may fit the new one that got its id, which is then never sent":
    "丢了提交的故障切换之后，丢失消息的回执可能对上得到同一 id 的新消息，新消息就永远不会发送",
  "rowpost goes by the database's clock alone, but delays that your programs work out by their own are off by that":
    "rowpost 只看数据库的时钟，但程序按自己的时钟算出的延时会差这么多",
  "what is wrong there stays unknown": "那里有没有问题无从得知",
  "relays publish nothing: this is a replica, or an administrator keeps writers out":
    "relay 发不出任何消息：这是从库，或管理员禁止写入",
  "after a crash of the machine (0: of the server too) the last second of committed orders may be gone with its messages":
    "机器崩溃后（值为 0 时数据库崩溃也算），最后一秒已提交的业务和消息可能一起丢失",
  "after a crash of the machine a page may be half written, and what is in it lost":
    "机器崩溃后，可能有页只写了一半，里面的数据丢失",
  "the server cuts keys and texts that are too long; rowpost's own enqueue refuses to work so, other programs' INSERTs do not notice":
    "过长的键和文本会被截断；rowpost 的写入会拒绝这样工作，其他程序的 INSERT 却察觉不到",
  "a message and its statement have to fit, so that large bodies cannot be enqueued":
    "消息连同语句都要放得下，因此大的消息体写不进去",
  "it has no transactions: a message stays when its order is rolled back, and two relays may send it at once":
    "它没有事务：业务回滚后消息还在，两个 relay 也可能同时发送它",
  "texts with other characters, such as emoji and rare Chinese ones, cannot be stored: their enqueue fails":
    "其他字符（表情、生僻字等）存不下：写入会失败",
  "messages with other characters cannot be stored: their enqueue fails": "含其他字符的消息存不下：写入会失败",
  "old row versions stay, so that scans become slower with every message; messages that it has locked wait":
    "旧的行版本清不掉，扫描会越来越慢；被它锁住的消息只能等待",
  "every scan walks over old row versions": "每次扫描都要越过旧的行版本",
  "after a crash of the machine committed orders and messages may be gone, or the tables broken":
    "机器崩溃后，已提交的业务和消息可能丢失，表也可能损坏",
  "after a crash of the server the last transactions may be gone together with their messages, and a message that was sent may be sent again":
    "数据库崩溃后，最后的事务可能连同消息一起丢失，已发送的消息也可能再发一次",
  "the table and its indexes grow with every message, and scans become slow": "表和索引随每条消息增长，扫描越来越慢",
  "relays publish nothing until it ends: an administrator keeps writers out, before a switchover as a rule":
    "在它结束之前 relay 发不出任何消息：管理员禁止写入，通常是在主备切换之前",
  "nothing can be written here, so that no relay works": "这里不能写入，因此 relay 无法工作",
  "after a crash of the server it is empty: all messages that were not sent are lost":
    "数据库崩溃后它会变空：没发送的消息全部丢失",
  "rows that a policy hides would never be sent; relays refuse to work so":
    "被策略隐藏的行永远不会发送；relay 拒绝这样工作",
  "it grows with every message, and scans become slow": "它随每条消息增长，扫描越来越慢",
  "scans walk over them; something keeps VACUUM from removing them, see D301, or it comes too seldom":
    "扫描要越过它们；有东西妨碍 VACUUM 清理（见 D301），或它来得太少",
  "at 2,000,000,000 the server takes no writes any more": "到 2,000,000,000 时数据库不再接受写入",
  "behind the last one every enqueue fails": "用完之后，每次写入都会失败",
  "VACUUM removes nothing that it might still see, so that scans become slower with every message":
    "它可能还看得到的行 VACUUM 都不清理，扫描会越来越慢",
  "it keeps old row versions and the write-ahead log, until the disk is full": "它留住旧的行版本和 WAL，直到磁盘写满",
  "a relay that has lost its connection may find none, and each needs four":
    "断线的 relay 可能连不回来；每个 relay 需要四个连接",
  "what waits, and who relays, is not known": "有多少在等待、谁在投递，都不清楚",
  "nothing of this table is sent": "这张表的消息都发不出去",
  "their messages wait until a relay takes them over: a second after its death as a rule, after its lease at the latest":
    "它们的消息要等 relay 接管：通常在死后一秒，最迟到租约结束",
  "that is fine during an update, and confusing afterwards": "升级期间没有问题，之后容易混乱",
  "a message goes where the relay that takes it sends it, and is marked sent; relays with different lists of topics do not share the work, and keep no order between them":
    "消息由领取它的 relay 发往它所连的地方，并标记为已发送；topic 列表不同的 relay 不分担工作，彼此之间也不保证顺序",
  "nothing goes to it; messages wait and lose no attempt": "发往它的消息都在等待，不消耗次数",
  "its messages wait, the others go on": "它的消息在等待，其他主题照常",
  "nobody sends them again, and later ones of their ordering keys wait behind them unless the relay says onFailed: skip":
    "不会再有人发送它们；除非 relay 设置 onFailed: skip，同一顺序键的后续消息也在等待",
  "the relay is behind, or something holds this message": "relay 落后了，或有东西挡住了这条消息",
  "its messages wait until somebody resumes it": "在有人恢复之前，它的消息一直等待",
  "nothing goes to it from this machine": "这台机器发不出消息给它",
};

/** What mends it, where it is a sentence; commands and SQL stay as they are. */
const MEND: Readonly<Record<string, string>> = {
  "give the relays the same brokers and routes; or each service topics of its own (--route without --broker), or a table of its own":
    "让这些 relay 使用相同的中间件和路由；或者让每个服务只领取自己的主题（只写 --route，不写 --broker），或者使用自己的表",
  "give them the address of the server itself, or a file on a disk of this machine":
    "改用数据库本身的地址，或本机磁盘上的文件",
  "check address, user, password and network from this machine": "检查地址、用户、密码，以及这台机器到它的网络",
  "nothing has to be done; a shorter --lease shortens it": "不必处理；把 --lease 调短可以缩短等待",
  "grant what docs/rights.md lists": "授予 docs/rights.zh-CN.md 列出的权限",
  "rowpost migrate --database URL (with --print it shows the SQL)":
    "rowpost migrate --database URL（加 --print 只显示 SQL）",
  "use the newer version everywhere": "各处都使用更新的版本",
  "have the table's programs write UTC, or run the database in UTC": "让写这张表的程序使用 UTC，或让数据库使用 UTC",
  "make them DATETIME(3), or leave time_zone of every program's sessions as the server has it":
    "改成 DATETIME(3)，或让每个程序的会话保持服务器的 time_zone",
  "what it says; rowpost migrate makes what is missing": "按它所说的做；缺少的表由 rowpost migrate 创建",
  "have both machines' clocks set (NTP)": "校准两台机器的时钟（NTP）",
  "grant the right that it names, if you want it looked at": "需要检查的话，授予它所说的权限",
  "use the address of the primary": "改用主库的地址",
  "set innodb_doublewrite = ON in the server's configuration, unless the file system writes pages whole":
    "在数据库配置中设置 innodb_doublewrite = ON，除非文件系统保证整页写入",
  "add STRICT_TRANS_TABLES to sql_mode": "在 sql_mode 中加上 STRICT_TRANS_TABLES",
  "end the transaction that holds them (D301), or give purge more threads (innodb_purge_threads)":
    "结束占住它们的事务（D301），或增加清理线程（innodb_purge_threads）",
  "ask who has set it; relays go on by themselves when it is off": "问清是谁设置的；取消之后 relay 会自动继续",
  "move to a database with ENCODING 'UTF8'": "迁移到 ENCODING 'UTF8' 的数据库",
  "make the pools of the programs smaller, or raise max_connections": "调小程序的连接池，或调大 max_connections",
  "grant what docs/rights.md lists for operators, and run this again":
    "授予 docs/rights.zh-CN.md 为运维人员列出的权限，再检查一次",
  "start one: rowpost relay --database URL --broker URL": "启动一个：rowpost relay --database URL --broker URL",
  "look again in half a minute; if they are still there, the relays' logs say why they do not take them":
    "半分钟后再看；如果还在，relay 的日志会说明为什么不接管",
  "update the older ones": "升级较旧的",
  "bring it back, or mend its address or login; relays notice by themselves":
    "恢复它，或修正地址和登录；relay 会自动发现",
  "mend what the broker says of it; relays try again by themselves, and reset-backoff brings its messages forward":
    "按中间件给出的原因处理；relay 会自动再试，reset-backoff 可以把消息提前",
  "rowpost list --state failed shows the reasons; rowpost retry sends them again":
    "rowpost list --state failed 显示原因；rowpost retry 重新发送",
  "copy what is left into a new table": "把剩下的复制到新表",
  "mend its address or login, or bring it back; then run this again": "修正地址或登录，或恢复它；再检查一次",
};

/** The same around a command. */
const MEND_AROUND: readonly (readonly [RegExp, string])[] = [
  [/^end it in its program, or: (.*)$/s, "在它的程序里结束它，或执行：$1"],
  [/^(rowpost show \S+) says what holds it$/, "$1 说明是什么挡住了它"],
  [/^(.*;) \(it writes the table anew\)$/s, "$1（会重写整张表）"],
];

/** A finding in this language; texts of servers and people stay as they are. */
export function diagnosisIn(language: "en" | "zh", found: Diagnosis): Diagnosis {
  if (language === "en") return found;
  const { mend, what, why } = found;
  return {
    ...found,
    what: replaced(WHAT, what),
    why: WHY[why] ?? why,
    mend: MEND[mend] ?? replaced(MEND_AROUND, mend),
  };
}

/** The first text that fits, in Chinese; else as it is. */
export function replaced(texts: readonly (readonly [RegExp, string])[], english: string): string {
  const [pattern, chinese] = texts.find(([each]) => each.test(english)) ?? [];
  return pattern === undefined || chinese === undefined ? english : english.replace(pattern, chinese);
}

/** The SQL or command in what mends it. */
export function commandOf(mend: string): string | undefined {
  const [sql] =
    /\b(?:ALTER|SET GLOBAL|KILL|VACUUM|CREATE|SELECT pg_|COMMIT PREPARED)\b.*?(?:;(?: SELECT pg_reload_conf\(\);)?|$)/s.exec(
      mend,
    ) ?? [];
  if (sql !== undefined) return sql.trim();
  return /\browpost (?:migrate|relay|resume|show|list)\b[^;()]*/
    .exec(mend)?.[0]
    .replace(/ (?:says|shows) .*$/, "")
    .trim();
}
