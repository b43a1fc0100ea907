/** What the rules are called where somebody chooses one, or looks back. */
import type { RuleName } from "./rules.ts";
import type { Language } from "./wording.ts";

const EN: Readonly<Record<RuleName, string>> = {
  database: "Database does not answer",
  schema: "Tables or rights do not fit",
  "no-relay": "No relay is alive",
  "shard-unowned": "Shards without a relay",
  "broker-away": "Broker away",
  "topic-resting": "Topic takes nothing",
  failed: "Failed messages",
  "oldest-due": "Message overdue",
  unconfirmed: "Not confirmed in time",
  "sending-long": "Long in sending",
  suspension: "Suspended without an end",
  "queue-lag": "Consumer group behind",
  "queue-dead": "Dead letters",
  "queue-paused": "Consumer group paused",
  "queue-tables": "Month tables of the queue",
  doctor: "The doctor's findings",
};

const ZH: typeof EN = {
  database: "数据库无应答",
  schema: "表结构或权限不符",
  "no-relay": "没有存活的投递实例",
  "shard-unowned": "分片无人负责",
  "broker-away": "消息中间件失联",
  "topic-resting": "主题暂停发送",
  failed: "消息发送失败",
  "oldest-due": "消息到期未发",
  unconfirmed: "逾期未确认",
  "sending-long": "长时间发送中",
  suspension: "挂起没有结束时间",
  "queue-lag": "消费组落后",
  "queue-dead": "死信",
  "queue-paused": "消费组暂停",
  "queue-tables": "队列月表",
  doctor: "体检发现的问题",
};

export const RULE_TITLES: Readonly<Record<Language, typeof EN>> = { en: EN, zh: ZH };
