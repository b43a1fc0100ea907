/**
 * packages/server/ops: the Grafana dashboard, from the list of metrics, and the Prometheus rules,
 * from the defaults of the alerts. Fails when a file is not what the sources say, and when a metric
 * has neither a panel nor a reason why not.
 *
 *   npm run check:monitoring             compares, after a build
 *   node tools/monitoring.mjs --write    writes them
 */
import { stringify } from "yaml";
import { METRICS } from "../packages/rowpost/dist/runtime/metrics.js";
import { RULE_DEFAULTS } from "../packages/server/dist/alerts/rules.js";
import { dashboardOf, NOT_SHOWN, SHOWN, wrongLabels } from "./monitoring/dashboard.mjs";
import { prometheusRules } from "./monitoring/rules.mjs";
import { madeFiles, report } from "./project-files.mjs";

const FOLDER = "packages/server/ops";
const HEAD = "# Alert rules of rowpost for Prometheus. Made by tools/monitoring.mjs from the defaults of the alerts.\n";

const { groups, problems: ruleProblems } = prometheusRules(RULE_DEFAULTS);
const ruleNames = groups.flatMap(({ rules }) => rules.flatMap(({ expr }) => expr.match(/rowpost_\w+/g) ?? []));
const names = Object.keys(METRICS);
const unknown = [...SHOWN, ...Object.keys(NOT_SHOWN), ...ruleNames].filter((name) => !names.includes(name));
const problems = [
  ...ruleProblems,
  ...names
    .filter((name) => !SHOWN.has(name) && NOT_SHOWN[name] === undefined)
    .map((name) => `${name} has no panel in tools/monitoring/dashboard.mjs, and no reason in NOT_SHOWN`),
  ...Object.keys(NOT_SHOWN)
    .filter((name) => SHOWN.has(name))
    .map((name) => `${name} has a panel, and a reason why not`),
  ...[...new Set(unknown)].map((name) => `there is no metric ${name}`),
  ...wrongLabels(METRICS),
];

const wanted =
  unknown.length > 0
    ? []
    : [
        { file: `${FOLDER}/grafana-dashboard.json`, text: `${JSON.stringify(dashboardOf(METRICS), null, 2)}\n` },
        { file: `${FOLDER}/prometheus-rules.yaml`, text: `${HEAD}${stringify({ groups }, { lineWidth: 0 })}` },
      ];
problems.push(
  ...madeFiles(wanted, "is not what the sources say: npm run build, then node tools/monitoring.mjs --write"),
);
report("monitoring", problems, `${names.length} metrics, ${groups[0].rules.length} rules`);
