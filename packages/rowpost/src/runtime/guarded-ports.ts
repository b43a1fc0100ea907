/**
 * Guards the user's logger and metrics, whose errors could leave a message unsettled or end the
 * process. Each is reported once.
 */
import { fewLines } from "./few-lines.ts";
import { type Logger, silentLogger, stderrLogger } from "./logger.ts";
import { type Metrics, silentMetrics } from "./metrics.ts";

/** Default: standard error. Never throws, nor floods. */
export function loggerOf(option: Logger | "silent" | undefined): Logger {
  return option === "silent" ? silentLogger : fewLines(guardedLogger(option ?? stderrLogger));
}

/** The first throw is reported on standard error. */
function guardedLogger(logger: Logger): Logger {
  const tell = once((error) => stderrLogger.error("the logger has thrown; it must not", { error }));
  const guard =
    (level: keyof Logger): Logger["warn"] =>
    (message, fields) =>
      attempt(() => logger[level](message, fields), tell);
  return { debug: guard("debug"), info: guard("info"), warn: guard("warn"), error: guard("error") };
}

/** The first throw is logged. */
export function guardedMetrics(metrics: Metrics | undefined, logger: Logger): Metrics {
  if (metrics === undefined) return silentMetrics;
  const tell = once((error) => logger.error("the metrics have thrown; they must not", { error }));
  return {
    increment: (name, labels, by) => attempt(() => metrics.increment(name, labels, by), tell),
    gauge: (name, labels, value) => attempt(() => metrics.gauge(name, labels, value), tell),
    observe: (name, labels, value) => attempt(() => metrics.observe(name, labels, value), tell),
  };
}

function attempt(call: () => void, tell: (error: unknown) => void): void {
  try {
    call();
  } catch (error) {
    tell(error);
  }
}

function once(tell: (error: unknown) => void): (error: unknown) => void {
  let isTold = false;
  return (error) => {
    if (isTold) return;
    isTold = true;
    tell(error);
  };
}
