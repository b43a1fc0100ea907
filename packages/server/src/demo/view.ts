/** The demo's display: redrawn in place on a terminal, a line a second elsewhere. */
import { styleText } from "node:util";
import { MESSAGE_STATES } from "rowpost/admin";
import { stateText, withoutControls } from "../cli/output.ts";
import type { CommandContext } from "../context.ts";
import type { Snapshot } from "./snapshot.ts";

export interface View {
  show(snapshot: Snapshot): void;
  say(text: string): void;
  end(): void;
}

const PICTURE_MS = 200;
const LINE_MS = 1_000;

export function createView(context: CommandContext): View {
  return context.stdout.isTTY === true ? createPicture(context) : createLines(context);
}

function createLines(context: CommandContext): View {
  let shownAt = Number.NEGATIVE_INFINITY;
  let lastLine = "";
  return {
    show(snapshot) {
      if (performance.now() - shownAt < LINE_MS) return;
      shownAt = performance.now();
      const line = lineOf(context, snapshot);
      // Prints only changes.
      if (line !== lastLine) context.stdout.write(`${line}\n`);
      lastLine = line;
    },
    say: (text) => void context.stdout.write(`${text}\n`),
    end() {},
  };
}

function lineOf(context: CommandContext, snapshot: Snapshot): string {
  return [
    `orders committed ${snapshot.committed}, rolled back ${snapshot.rolledBack}`,
    statesText(context, snapshot),
    `consumer has ${snapshot.received} (${snapshot.duplicates} came again)`,
    `${snapshot.rates.at(-1) ?? 0}/s`,
  ].join(" | ");
}

function statesText(context: CommandContext, { states }: Snapshot): string {
  // States that this demo cannot reach are shown only for messages put there by hand.
  const shown = MESSAGE_STATES.filter((state) => states[state] > 0 || state !== "suspended");
  return shown.map((state) => `${stateText(context, state)} ${states[state]}`).join(" · ");
}

function createPicture(context: CommandContext): View {
  const { stdout } = context;
  let drawn = 0;
  let shownAt = Number.NEGATIVE_INFINITY;
  let last: Snapshot | undefined;

  function draw(snapshot: Snapshot): void {
    // A terminal of unknown width reports 0.
    const width = stdout.columns || 80;
    // Lines above the window could not be redrawn.
    const most = (stdout.rows || 24) - 1;
    const lines = pictureOf(context, snapshot)
      .slice(0, most)
      .map((line) => cut(line, width - 1));
    const up = drawn > 0 ? `\u001b[${drawn}A` : "\u001b[?25l";
    stdout.write(`${up}${lines.map((line) => `\u001b[2K${line}\n`).join("")}\u001b[J`);
    drawn = lines.length;
  }

  return {
    show(snapshot) {
      last = snapshot;
      if (performance.now() - shownAt < PICTURE_MS) return;
      shownAt = performance.now();
      draw(snapshot);
    },
    say(text) {
      if (drawn > 0) stdout.write(`\u001b[${drawn}A\u001b[J`);
      drawn = 0;
      stdout.write(`${text}\n`);
    },
    end() {
      if (last === undefined) return;
      draw(last);
      last = undefined;
      drawn = 0;
      stdout.write("\u001b[?25h");
    },
  };
}

const BARS = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

function pictureOf(context: CommandContext, snapshot: Snapshot): string[] {
  const bold = (text: string): string => (context.colors ? styleText("bold", text) : text);
  const highest = Math.max(1, ...snapshot.rates);
  const bars = snapshot.rates.map((rate) => BARS[Math.round((rate / highest) * (BARS.length - 1))] ?? "").join("");
  const trouble = [...snapshot.trouble].map(([what, count]) => `${what} ×${count}`).join(", ");
  const leases = snapshot.leases.map(({ label, shards, of }) => `${label} relays ${shards} of ${of}`).join(", ");
  return [
    `${bold("from")}      ${snapshot.database}`,
    `${bold("to")}        ${snapshot.consumer}`,
    `${bold("orders")}    committed ${snapshot.committed}, rolled back ${snapshot.rolledBack}`,
    `${bold("messages")}  ${statesText(context, snapshot)}`,
    `${bold("consumer")}  has ${snapshot.received}, ${snapshot.duplicates} came again${trouble === "" ? "" : `; it made trouble: ${trouble}`}`,
    `${bold("rate")}      ${String(snapshot.rates.at(-1) ?? 0).padStart(5)}/s ${bars}`,
    `${bold("shards")}    ${leases === "" ? "no relay" : leases}`,
    bold("last failures"),
    ...snapshot.lastFailures.map(
      ({ atMs, text }) => `  ${new Date(atMs).toLocaleTimeString("sv")}  ${withoutControls(text)}`,
    ),
    "Ctrl-C ends it.",
  ];
}

/** East Asian wide characters take two columns. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/;
const ESCAPE = "\u001b";

/**
 * Cuts to `width` columns, since a wrapped line would break the redrawing. Colors take no column
 * and are ended at the cut.
 */
export function cut(line: string, width: number): string {
  let columns = 0;
  let text = "";
  for (let index = 0; index < line.length; ) {
    const isColor = line[index] === ESCAPE;
    // Colors are the only sequences here, and end with an m.
    const next = isColor
      ? line.slice(index, line.indexOf("m", index) + 1)
      : String.fromCodePoint(line.codePointAt(index) ?? 0);
    if (!isColor) columns += WIDE.test(next) ? 2 : 1;
    if (columns > width) return text.includes(ESCAPE) ? `${text}${ESCAPE}[0m` : text;
    text += next;
    index += next.length;
  }
  return text;
}
