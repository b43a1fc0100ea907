import type { Dictionary } from "./en.ts";

export const bulk: Dictionary["bulk"] = {
  title: "批量操作",
  none: "还没有批量操作。“失败”页可以把同一个原因的消息全部重试。",
  means: (count) => `这一操作针对 ${count} 条消息，以它们现在的样子为准。期间被别人改动的消息保持原样，并会列出。`,
  pace: "速度",
  perSecond: (rate) => `每秒最多 ${rate} 条`,
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
    ...{ preview: "预览", running: "进行中", paused: "已暂停" },
    ...{ done: "完成", cancelled: "已取消", failed: "失败" },
  },
  sum: (changed, total) => `${total} 条中已改 ${changed} 条`,
  conflicts: (count) => `${count} 条保持原样：已被别人改动`,
  vanished: (count) => `${count} 条已不存在`,
  moves: { pauseOperation: "暂停", resumeOperation: "继续", cancelOperation: "取消" },
  aboutMoves: {
    pauseOperation: "正在处理的一批完成后停下，直到有人让它继续。",
    resumeOperation: "继续处理剩下的消息。",
    cancelOperation: "正在处理的一批完成后结束。已经改动的保持改动，其余保持原样。",
  },
  moved: { pauseOperation: "已暂停。", resumeOperation: "继续进行。", cancelOperation: "已取消。" },
};
