/** Links of the pages lead to files and headings that exist; each page has its Chinese one. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
const HOME = "https://github.com/rowpost/rowpost/blob/main/";

function pages(): string[] {
  const docs = readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" }).map((name) => join("docs", name));
  const packages = readdirSync(join(ROOT, "packages")).flatMap((name) =>
    readdirSync(join(ROOT, "packages", name)).map((file) => join("packages", name, file)),
  );
  const examples = readdirSync(join(ROOT, "examples"), { recursive: true, encoding: "utf8" })
    .filter((name) => !name.includes("node_modules"))
    .map((name) => join("examples", name));
  return [...readdirSync(ROOT), ...docs, ...packages, ...examples].filter((name) => name.endsWith(".md"));
}

/** The text without its code, where brackets are no links. */
function proseOf(file: string): string {
  return readFileSync(join(ROOT, file), "utf8")
    .replace(/^```[\s\S]*?^```$/gm, "")
    .replace(/`[^`]*`/g, (code) => code.slice(1, -1).replace(/[[\]()]/g, ""));
}

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(file: string): string[] {
  return [...proseOf(file).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

function brokenLinksOf(file: string): string[] {
  const links = [...proseOf(file).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
  return links.filter((link) => {
    if (/^(https?|mailto):/.test(link) && !link.startsWith(HOME)) return false;
    const [path = "", anchor] = link.replace(HOME, "").split("#");
    const target = path === "" ? file : join(link.startsWith(HOME) ? "." : dirname(file), decodeURI(path));
    if (!existsSync(join(ROOT, target))) return true;
    return anchor !== undefined && !anchorsOf(target).includes(decodeURI(anchor));
  });
}

describe("pages", () => {
  it.each(pages())("%s links to what is there", (file) => {
    expect(brokenLinksOf(file)).toEqual([]);
  });

  it("are there in English and in Chinese, with the same outline", () => {
    const isEnglish = (name: string): boolean => !name.startsWith("packages/") && !name.endsWith(".zh-CN.md");
    const outline = (file: string): string[] => [...proseOf(file).matchAll(/^(#+) /gm)].map(([, level = ""]) => level);
    for (const page of pages().filter(isEnglish)) {
      const chinese = page.replace(/\.md$/, ".zh-CN.md");
      expect(existsSync(join(ROOT, chinese)), chinese).toBe(true);
      expect([chinese, ...outline(chinese)]).toEqual([chinese, ...outline(page)]);
    }
  });
});
