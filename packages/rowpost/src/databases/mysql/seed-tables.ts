/**
 * DDL of the `t_local_message` and `message_table` layouts, verbatim except for IF NOT EXISTS and
 * the table name.
 */
import type { TableLayout } from "../sql/layout.ts";

/** CREATE TABLE of such a layout under this (quoted) name; empty for a table of the user's own. */
export function seedTable(layout: TableLayout, quotedTable: string): readonly string[] {
  if (layout.name === "t_local_message")
    return [T_LOCAL_MESSAGE.replace("`t_local_message`", () => `IF NOT EXISTS ${quotedTable}`)];
  if (layout.name === "message_table")
    return [MESSAGE_TABLE.replace("message_table", () => `IF NOT EXISTS ${quotedTable}`)];
  return [];
}

export const T_LOCAL_MESSAGE: string = `CREATE TABLE \`t_local_message\` (
    \`id\`                bigint          NOT NULL AUTO_INCREMENT COMMENT '主键ID',
    \`biz_type\`          varchar(64)     NOT NULL COMMENT '业务类型（区分不同业务，例如order_create、stock_lock等）',
    \`biz_key\`           varchar(128)    NOT NULL COMMENT '业务幂等键（关联具体业务记录，例如订单号）',
    \`topic\`             varchar(255)    NOT NULL COMMENT 'RocketMQ Topic',
    \`message_body\`      text            NOT NULL COMMENT '消息内容（JSON格式）',
    \`status\`            tinyint         NOT NULL COMMENT '消息状态：0-待发送，1-发送中，2-已发送，3-发送失败',
    \`retry_count\`       int             NOT NULL DEFAULT 0 COMMENT '消息已重试次数',
    \`next_retry_time\`   datetime        DEFAULT NULL COMMENT '下一次重试时间（可实现延时发送）',
    \`last_exec_time\`    datetime        DEFAULT NULL COMMENT '最后一次发送时间',
    \`fail_reason\`       varchar(512)    DEFAULT NULL COMMENT '最后一次失败原因',
    \`created_by\`        varchar(64)     NOT NULL COMMENT '创建人或系统代码标识',
    \`updated_by\`        varchar(64)     NOT NULL COMMENT '修改人或系统代码标识',
    \`gmt_create\`        datetime        NOT NULL DEFAULT CURRENT_TIMESTAMP COMMENT '创建时间',
    \`gmt_modified\`      datetime        NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP COMMENT '修改时间',
    PRIMARY KEY (\`id\`),
    UNIQUE KEY \`uk_biz_type_key\` (\`biz_type\`, \`biz_key\`) COMMENT '业务幂等约束',
    KEY \`idx_status_next_retry\` (\`status\`, \`next_retry_time\`) COMMENT '扫描待重试的消息',
    KEY \`idx_topic\` (\`topic\`) COMMENT '按 topic 查找'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='本地消息表（生产者侧）'`;

export const MESSAGE_TABLE: string = `CREATE TABLE message_table (
  id BIGINT PRIMARY KEY AUTO_INCREMENT,
  gmt_create DATETIME NOT NULL,
  gmt_modified DATETIME NOT NULL,
  message_key VARCHAR(128) NOT NULL,
  message_id VARCHAR(128) DEFAULT NULL,
  message_type VARCHAR(64) NOT NULL,
  topic VARCHAR(64) NOT NULL,
  message_body TEXT NOT NULL,
  state VARCHAR(32) NOT NULL,
  retry_count INT DEFAULT 0,
  next_retry_at DATETIME DEFAULT NULL,
  last_retry_time DATETIME DEFAULT NULL,
  fail_reason TEXT DEFAULT NULL,
  lock_version BIGINT DEFAULT 0,
  UNIQUE KEY uniq_key_type (message_key, message_type),
  INDEX idx_state_retry (state, next_retry_at)
)`;
