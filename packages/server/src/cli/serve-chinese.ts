/** Chinese of `rowpost serve`, and of tokens that read the metrics. */
export const SERVE_CHINESE: Readonly<Record<string, string>> = {
  "run a relay and serve the console, in one process, until SIGTERM; when one of them cannot go on, both end":
    "在一个进程里运行 relay 并提供控制台，直到收到 SIGTERM；其中一个无法继续时，两个都结束",
  "The options are those of `rowpost relay` and `rowpost console`. /metrics of the console has the":
    "选项与 `rowpost relay` 和 `rowpost console` 的相同。控制台的 /metrics",
  "numbers of the relay too, and /readyz asks both.": "也包含 relay 的数字，/readyz 两者都问。",
  "# for /metrics alone": "# 只能读 /metrics",
};
