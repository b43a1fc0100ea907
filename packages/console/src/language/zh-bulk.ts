import type { Dictionary } from "./en.ts";

export const bulk: Dictionary["bulk"] = {
  title: "批量操作",
  here: "这里是这个控制台进程启动以来发起的批量操作。随进程一起中断的，在审计里只有“开始”、没有结束：重新发起一次即可，只针对还没改动的消息。",
  interrupted: "查看已开始的",
  none: "还没有批量操作。“失败”页可以把同一个原因的消息全部重试。",
  means: (count) => `这一操作针对 ${count} 条消息，之后才来的不算。期间被别人改动的消息保持原样，并会列出。`,
  start: "开始",
  started: "已经开始。",
  columns: {
    ...{ started: "开始时间", what: "操作", state: "状态", progress: "进度" },
    ...{ who: "操作人", reason: "理由", actions: "可以做的" },
  },
  kinds: {
    ...{ retry: "重试失败的消息", resend: "再次发送", suspend: "挂起" },
    ...{ resume: "恢复", archive: "归档", delete: "删除" },
  },
  states: {
    ...{ preview: "预览", running: "进行中" },
    ...{ done: "完成", cancelled: "已取消", failed: "失败" },
  },
  sum: (changed, total) => `${total} 条中已改 ${changed} 条`,
  conflicts: (count) => `${count} 条保持原样：已被别人改动`,
  vanished: (count) => `${count} 条已不存在`,
  cancel: "取消",
  aboutCancel: "正在处理的一批完成后结束。已经改动的保持改动，其余保持原样。",
  cancelled: "已取消。",
};
