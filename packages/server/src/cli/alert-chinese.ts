/** The help of `rowpost alert` in Chinese, by its English texts. */
export const ALERT_CHINESE: Readonly<Record<string, string>> = {
  "what is wrong, who is told of it, and what is silenced": "告警：有哪些问题、通知谁、哪些已静默",
  "JSON with the channels that are told what is wrong, and the rules": "JSON 文件：告警通知的渠道和规则",
  "look once, tell the channels of --alerts what is due, and print what is wrong":
    "检查一次，向 --alerts 的渠道发送该发的通知，并打印现有问题",
  "one look, for cron; rowpost relay and rowpost console look all the time":
    "只检查一次，供 cron 使用；rowpost relay 和 rowpost console 会持续检查",
  "Where another process evaluates already, this prints what that one knows, and tells nobody.":
    "已有其他进程在判定告警时，只打印它所知道的，不发通知。",
  "# every minute, by cron": "# 由 cron 每分钟运行",
  "Exit codes: 0 nothing is wrong, 1 something is, or the database does not answer, 2 wrong input.":
    "退出码：0 没有问题；1 有问题或数据库无应答；2 输入有误。",
  "what is wrong, as whoever evaluates knows it, and what is silenced":
    "列出当前告警（以判定告警的进程所知为准）和静默",
  "send a test notice to a channel of --alerts, and print what it answers":
    "向 --alerts 的一个渠道发送测试通知，并打印其应答",
  "its name in the file": "文件中的渠道名",
  "Exit codes: 0 the channel has taken it, 1 it has not, 2 wrong input.":
    "退出码：0 渠道已接收；1 未接收；2 输入有误。",
  "tell nobody of a rule for a while, seven days at most; or end that with --end":
    "在一段时间内（最长 7 天）不通知某条规则；或用 --end 结束静默",
  "one rule; without it all are meant": "一条规则；不给出则指全部规则",
  "only this topic, type or broker, topic/group or id of a finding": "仅此主题、类型、中间件、topic/group 或体检项编号",
  "for so long": "静默时长",
  "end this silence now": "立即结束此静默",
};
