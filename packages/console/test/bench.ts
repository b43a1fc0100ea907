/** The built app in a real browser, served by a real console over a real table. */
import { existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import axe from "axe-core";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import type { Database } from "rowpost";
import { createQueue, type Queue } from "rowpost/queue";
import { sqlite } from "rowpost/sqlite";
import { createOneTimeLink, type OneTimeLink } from "../../server/src/access/link.ts";
import { hashPassword } from "../../server/src/access/secrets.ts";
import type { ConsoleOptions } from "../../server/src/console.ts";
import { temporaryFile } from "../../server/test/command.ts";
import { type ConsoleBench, openConsole } from "../../server/test/console.ts";

const CHROMIUM = process.env["ROWPOST_CHROMIUM"] ?? "/usr/bin/chromium";
const APP = new URL("../../server/dist/console/index.html", import.meta.url);
const PASSWORD = "correct horse battery";

/** One browser for all tests of a file. */
export function startBrowser(): Promise<Browser> {
  if (!existsSync(CHROMIUM)) throw new Error(`${CHROMIUM} is missing: run tools/chromium.sh, or set ROWPOST_CHROMIUM`);
  if (!existsSync(APP)) throw new Error("the app is not built: run `npm run build` first (`npm test` does)");
  const off = ["gpu", "quic", "background-networking", "component-update", "sync"].map((what) => `--disable-${what}`);
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--no-first-run", ...off] });
}

/** What the browser complained of, and what no page may ever do. */
export interface Complaints {
  /** Dialogs, violations of the policy, errors, and requests to another origin. */
  readonly all: string[];
}

export interface AppBench extends ConsoleBench {
  readonly address: string;
  readonly link: OneTimeLink;
  readonly complaints: Complaints;
  /** A page of somebody who has logged in. */
  open(path: string, user?: "operator" | "reader" | "admin", options?: BrowserContextOptions): Promise<Page>;
  /** A page of somebody who has not. */
  openStranger(path: string): Promise<Page>;
}

/** The app over a new file, in a browser of its own. */
export interface FileApp {
  readonly app: AppBench;
  readonly browser: Browser;
  readonly close: () => Promise<void>;
}

export async function openFileApp(options: Partial<ConsoleOptions> = {}): Promise<FileApp> {
  const browser = await startBrowser();
  const place = await temporaryFile();
  const app = await openApp(browser, sqlite({ file: place.file }), options);
  return {
    app,
    browser,
    async close() {
      await app.close();
      await browser.close();
      await place.remove();
    },
  };
}

/** The same with a queue in the file. */
export async function openQueueApp(): Promise<FileApp & { readonly queue: Queue }> {
  const opened = await openFileApp();
  const queue = createQueue({ database: opened.app.database });
  return {
    ...opened,
    queue,
    async close() {
      await queue.close();
      await opened.close();
    },
  };
}

/** Opens it on an empty database. */
export async function openApp(
  browser: Browser,
  database: Database,
  options: Partial<ConsoleOptions> = {},
): Promise<AppBench> {
  const link = createOneTimeLink();
  const password = await hashPassword(PASSWORD);
  const users = (["reader", "operator", "admin"] as const).map((role) => ({ name: role, role, password }));
  const bench = await openConsole(database, { ...options, access: { users, link } });
  const server = createServer((...both) => bench.made.node(...both));
  const address = await listening(server);
  const complaints: Complaints = { all: [] };
  const sessions = new Map<string, Awaited<ReturnType<BrowserContext["storageState"]>>>();
  const contexts: BrowserContext[] = [];

  async function newPage(path: string, options: BrowserContextOptions): Promise<Page> {
    const context = await browser.newContext({ locale: "en-US", timezoneId: "Asia/Shanghai", ...options });
    context.setDefaultTimeout(120_000);
    contexts.push(context);
    await watch(context, address, complaints);
    const page = await context.newPage();
    await page.goto(new URL(path, address).href);
    return page;
  }

  return {
    ...bench,
    address,
    link,
    complaints,
    openStranger: (path) => newPage(path, {}),
    async open(path, user = "admin", options = {}) {
      let storageState = sessions.get(user);
      if (storageState === undefined) {
        const context = await browser.newContext();
        await context.request.post(`${address}api/v1/session`, { data: { name: user, password: PASSWORD } });
        storageState = await context.storageState();
        sessions.set(user, storageState);
        await context.close();
      }
      return await newPage(path, { storageState, ...options });
    },
    async close() {
      await Promise.all(contexts.map((context) => context.close()));
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await bench.close();
    },
  };
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** A refused request is an error to the browser too: those are tested by what is shown. */
async function watch(context: BrowserContext, address: string, { all }: Complaints): Promise<void> {
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", ({ blockedURI, violatedDirective }) =>
      console.error(`policy: ${violatedDirective} ${blockedURI}`),
    );
  });
  context.on("dialog", (dialog) => {
    all.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  context.on("console", (message) => {
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) all.push(message.text());
  });
  context.on("weberror", (error) => all.push(String(error.error().stack)));
  context.on("request", (request) => {
    if (!request.url().startsWith(address)) all.push(`foreign: ${request.url()}`);
  });
}

/** A page is there when its heading is, and nothing on it still loads. */
export async function loaded(page: Page): Promise<void> {
  await page.locator("h1").first().waitFor();
  await page.waitForFunction(() => document.querySelector(".loading") === null);
}

/** Serious and critical findings of axe-core. */
export async function findingsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  return await page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: {
        run(): Promise<{
          readonly violations: readonly {
            readonly id: string;
            readonly impact: string;
            readonly nodes: readonly { readonly html: string }[];
          }[];
        }>;
      };
    };
    const { violations } = await axe.run();
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id} ${html.slice(0, 200)}`));
  });
}

/** On a desk in light, and on a phone in dark. */
const LOOKS = [
  { colorScheme: "light", viewport: { width: 1_440, height: 900 } },
  { colorScheme: "dark", viewport: { width: 390, height: 844 } },
] as const;

/** What axe-core finds in each look, and how much too wide the page is there. */
export async function findingsInEachLook(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const { colorScheme, viewport } of LOOKS) {
    // What fades in is too pale for a moment.
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.setViewportSize(viewport);
    const wider = await page.evaluate(() => {
      const [dialog, root] = [document.querySelector("dialog"), document.documentElement];
      return Math.max(root.scrollWidth - innerWidth, dialog === null ? 0 : dialog.scrollWidth - dialog.clientWidth);
    });
    const findings = [...(await findingsOf(page)), ...(wider > 0 ? [`${wider} px too wide`] : [])];
    found.push(...findings.map((finding) => `${colorScheme}: ${finding}`));
  }
  return found;
}
