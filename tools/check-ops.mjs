/**
 * Checks the files of ops/: Dockerfile by dockerfile-utils, compose file by dclint, Kubernetes
 * manifests by the API's schemas, unit by its expected settings and, if present, systemd. Beyond
 * linters: the relay does not run as root, health probes use the right paths, each way to run it
 * waits long enough for its stop, and systemd kills no migration.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { validate } from "dockerfile-utils";
import { Deployment } from "kubernetes-models/apps/v1/Deployment";
import { Job } from "kubernetes-models/batch/v1/Job";
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget";
import { parseAllDocuments } from "yaml";
import { projectFiles, report } from "./project-files.mjs";

const DOCKERFILE = "ops/Dockerfile";
const COMPOSE = "ops/compose.yaml";
const UNIT = "ops/rowpost.service";
/** A relay's drain timeout, and the 5 s it gives a frozen database or broker. */
const STOP_SECONDS = 15 + 5;

const read = (path) => readFileSync(path, "utf8");

const textOf = (message) => (typeof message === "string" ? message : message.value);

function dockerfileProblems() {
  const text = read(DOCKERFILE);
  const found = validate(text).map(({ message, range }) => `${DOCKERFILE}:${range.start.line + 1}: ${textOf(message)}`);
  const user = [...text.matchAll(/^USER (\S+)/gm)].at(-1)?.[1] ?? "root";
  if (user === "root" || user === "0") found.push(`${DOCKERFILE}: it runs as root`);
  if (!/^HEALTHCHECK /m.test(text)) found.push(`${DOCKERFILE}: it has no health check`);
  return found;
}

/** Runs a linter on a file; its output is the problem. */
function linted(path, program, args) {
  const { status, error, stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
  return status === 0 ? [] : [`${path}: ${error?.message ?? ""}${stdout}${stderr}`];
}

/** Allowed settings; systemd ignores a mistyped one with a warning in its journal. */
const UNIT_SETTINGS = {
  Unit: ["Description", "Documentation", "After", "Wants"],
  Service: [
    ...["DynamicUser", "EnvironmentFile", "ExecStartPre", "ExecStart", "Restart", "RestartSec"],
    ...["TimeoutStartSec", "TimeoutStopSec", "NoNewPrivileges", "PrivateDevices", "PrivateTmp"],
    ...["ProtectHome", "ProtectSystem"],
  ],
  Install: ["WantedBy"],
};

function unitProblems() {
  const found = [];
  const settings = new Map();
  let section = "";
  for (const [index, line] of read(UNIT).split("\n").entries()) {
    if (line === "" || line.startsWith("#")) continue;
    const header = /^\[(\w+)\]$/.exec(line);
    const [, name, value] = /^(\w+)=(.+)$/.exec(line) ?? [];
    if (header) section = header[1];
    else if (UNIT_SETTINGS[section]?.includes(name)) settings.set(name, value);
    else found.push(`${UNIT}:${index + 1}: nobody here knows this: ${line}`);
  }
  for (const name of ["ExecStartPre", "ExecStart"]) {
    if (!settings.get(name)?.startsWith("/")) found.push(`${UNIT}: ${name} is no absolute path`);
  }
  // The default of 90 s, also for ExecStartPre, would kill and restart a longer migration.
  if (settings.get("TimeoutStartSec") !== "infinity") found.push(`${UNIT}: a long migration is killed`);
  if (settings.get("Restart") !== "always") found.push(`${UNIT}: it does not come back`);
  if (settings.get("DynamicUser") !== "yes") found.push(`${UNIT}: it runs as root`);
  return found;
}

/** systemd's own check, on machines that have it. */
function systemdProblems() {
  const program = "systemd-analyze";
  const isThere = spawnSync(program, ["--version"]).error?.code !== "ENOENT";
  return isThere ? linted(UNIT, program, ["verify", UNIT]) : [];
}

const dclint = fileURLToPath(new URL("../bin/dclint.cjs", import.meta.resolve("dclint")));

const MODELS = { Deployment, Job, PodDisruptionBudget };

function manifestProblems(path) {
  return parseAllDocuments(read(path), { merge: true }).flatMap((document) => {
    const manifest = document.toJS();
    const Model = MODELS[manifest.kind];
    if (Model === undefined) return [`${path}: nobody here knows a ${manifest.kind}`];
    try {
      new Model(manifest).validate();
    } catch (error) {
      return [`${path}: ${manifest.kind}: ${error.message}`];
    }
    return manifest.kind === "Deployment" ? probeProblems(path, manifest.spec.template.spec.containers) : [];
  });
}

/** The schema accepts unknown fields, such as a mistyped probe. */
function probeProblems(path, containers) {
  return containers.flatMap(({ name, livenessProbe, readinessProbe }) => {
    const asked = [livenessProbe?.httpGet?.path, readinessProbe?.httpGet?.path].join();
    return asked === "/livez,/readyz" ? [] : [`${path}: ${name} is asked for ${asked}`];
  });
}

/** How long each of them waits for a stopping relay. */
function graceProblems() {
  const waits = {
    [COMPOSE]: /stop_grace_period: (\d+)s/,
    [UNIT]: /TimeoutStopSec=(\d+)/,
    "ops/kubernetes/relay.yaml": /terminationGracePeriodSeconds: (\d+)/,
  };
  return Object.entries(waits).flatMap(([path, pattern]) => {
    const seconds = Number(pattern.exec(read(path))?.[1] ?? 0);
    return seconds > STOP_SECONDS ? [] : [`${path}: a stop takes up to ${STOP_SECONDS} s, and it waits ${seconds} s`];
  });
}

const manifests = projectFiles("ops/kubernetes/*.yaml");
const problems = [
  ...dockerfileProblems(),
  ...linted(COMPOSE, process.execPath, [dclint, "--quiet", COMPOSE]),
  ...manifests.flatMap(manifestProblems),
  ...unitProblems(),
  ...systemdProblems(),
  ...graceProblems(),
];
report("ops", problems, [DOCKERFILE, COMPOSE, UNIT, ...manifests].join(", "));
