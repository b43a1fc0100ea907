/** The help of `rowpost doctor` in Chinese, by its English texts. */
export const DOCTOR_CHINESE: Readonly<Record<string, string>> = {
  "look for what keeps messages from going out or could lose them, and say what mends it":
    "检查什么会让消息发不出去或可能丢失，并给出处理办法",
  "topics that go to another broker, as with rowpost relay": "发往其他中间件的主题，与 rowpost relay 相同",
  "It changes nothing. What it may not look at, it says. With --broker it looks whether that answers.":
    "它不改动任何数据；没有权限查看的会说明。给出 --broker 时也检查中间件是否有应答。",
  "Exit codes: 0 nothing is wrong, 1 errors, 3 warnings only, 2 wrong input.":
    "退出码：0 没有问题；1 有错误；3 只有警告；2 输入有误。",
};
