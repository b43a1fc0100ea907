import type { care as english } from "./en-care.ts";
import { alerts } from "./zh-alerts.ts";

/** 未确认和体检两个页面的文字。 */
export const care: typeof english = {
  alerts,
  unconfirmed: {
    title: "未确认的消息",
    about: "已经发送，但消费者还没有确认。到期后由投递实例处理。",
    none: "没有等待确认的消息",
    noneText: "设置了 confirm 的消息类型，从中间件收下到消费者确认之前，会列在这里。",
    types: {
      ...{ type: "消息类型", overdue: "已到期", waiting: "未到期" },
      consumers: "消费者",
    },
    anyone: "任意一个",
    columns: {
      ...{ id: "id", type: "类型", key: "业务键", deadline: "期限", confirmed: "已确认" },
      ...{ missing: "缺少", reason: "消费者报告", actions: "操作" },
    },
    overdue: "已到期",
    guess: "“缺少”：最近确认过同类型的其他消息、但没有确认这一条的消费者。",
    more: (count) => `期限最早的 ${count} 条；还有更多。`,
    unknown: "未知消息的确认",
    unknownAbout: "消费者确认了消息表和归档里都没有的消息；保留一周。",
    noUnknown: "没有。",
    unknownColumns: {
      ...{ last: "最近", times: "次数", type: "类型", key: "业务键", consumer: "消费者", said: "内容" },
      message: "消息",
    },
    consumed: "已消费",
    there: "现在有了：查看",
    notThere: "没有",
    noName: "没有署名",
  },
  doctor: {
    title: "体检",
    about: "检查什么会让消息发不出去或可能丢失，并给出处理办法。检查不改动任何数据。",
    again: "再检查一次",
    busy: "正在检查…",
    well: "没有发现问题",
    on: (server, ms) => `${server}，用时 ${ms} 毫秒`,
    unreached: "连不上数据库",
    severities: { error: "错误", warning: "警告", note: "提示" },
    counts: {
      error: (count) => `${count} 个错误`,
      warning: (count) => `${count} 个警告`,
      note: (count) => `${count} 个提示`,
    },
    why: "后果",
    mend: "处理办法",
    broker: "中间件只由 rowpost doctor --broker URL 检查。",
  },
};
