/** The help of `rowpost operation` in Chinese, by its English texts. */
export const OPERATION_CHINESE: Readonly<Record<string, string>> = {
  "changes of many messages: how far they are, and pausing, resuming and cancelling them":
    "批量操作：查看进度，暂停、恢复和取消",
  "list changes of many messages, the newest first, 100 at most": "列出批量操作，最新的在前，最多 100 个",
  "show an operation, and the messages that it left as they were": "显示一个批量操作，以及它没有改动的消息",
  "id of the operation": "批量操作的 id",
  "at most so many of these messages": "这些消息最多显示多少条",
  "let an operation rest after its batch": "让批量操作在当前批次之后暂停",
  "let a paused operation go on": "让暂停的批量操作继续",
  "end an operation after its batch; what is changed stays so": "在当前批次之后结束批量操作；已改动的保持不变",
  "Exit codes: 0 done, 1 its state forbids it, or there is none, 2 wrong input.":
    "退出码：0 完成；1 当前状态不允许，或没有这个操作；2 输入有误。",
};
