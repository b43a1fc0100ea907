/**
 * The app's files, read once and served from memory: a request is looked up in a map, never in the
 * file system.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  ico: "image/x-icon",
  json: "application/json",
  webmanifest: "application/manifest+json",
  txt: "text/plain; charset=utf-8",
  woff2: "font/woff2",
};

interface AppFile {
  readonly bytes: Buffer;
  readonly gzip: Buffer;
  readonly type: string;
  readonly etag: string;
}

/** Output of the app's build: `dist/console/`, beside this file's build. */
const BUILT = fileURLToPath(new URL("../../dist/console/", import.meta.url));

/** Answers GETs outside the API. `folder`: for tests. */
export function createAppFiles(basePath: string, folder: string = BUILT): (request: Request, path: string) => Response {
  const files = readFiles(folder, basePath);
  return (request, path) => {
    if (request.method !== "GET" && request.method !== "HEAD") return plain(405, "GET only\n", { allow: "GET, HEAD" });
    const wantsPage = (request.headers.get("accept") ?? "").includes("text/html");
    const isPage = path === "/" || (wantsPage && !path.startsWith("/assets/"));
    const file = files.get(path.slice(1)) ?? (isPage ? files.get("index.html") : undefined);
    if (file !== undefined) return served(request, file, path.startsWith("/assets/"));
    if (!isPage) return plain(404, "there is no such file\n");
    return plain(
      200,
      "The API is at api/v1. The app is not part of this build: packages/server/dist/console is missing.\n",
    );
  };
}

function readFiles(folder: string, basePath: string): ReadonlyMap<string, AppFile> {
  const files = new Map<string, AppFile>();
  if (!existsSync(folder)) return files;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(join(folder, "/").length).replaceAll("\\", "/");
    const read = readFileSync(path);
    const bytes = name === "index.html" ? withBase(read, basePath) : read;
    const type = TYPES[name.replace(/^.*\./, "")] ?? "application/octet-stream";
    const etag = `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
    files.set(name, { bytes, gzip: gzipSync(bytes, { level: 9 }), type, etag });
  }
  return files;
}

/** All addresses of the app are relative to this one, whatever its prefix. */
function withBase(html: Buffer, basePath: string): Buffer {
  const href = basePath === "/" ? "/" : `${basePath}/`;
  return Buffer.from(
    html
      .toString()
      .replace(/<base [^>]*>/, "")
      .replace(/<head>/, `<head><base href="${href}">`),
  );
}

/** Files below assets/ have their hash in their names. */
function served(request: Request, { bytes, etag, gzip, type }: AppFile, isHashed: boolean): Response {
  const cache = isHashed ? "public, max-age=31536000, immutable" : "no-cache";
  const headers = { "content-type": type, "cache-control": cache, etag, vary: "accept-encoding" };
  if (request.headers.get("if-none-match")?.replace(/^W\//, "") === etag)
    return new Response(null, { status: 304, headers });
  const isSmaller = gzip.length < bytes.length && /\bgzip\b/.test(request.headers.get("accept-encoding") ?? "");
  if (!isSmaller) return new Response(new Uint8Array(bytes), { headers });
  return new Response(new Uint8Array(gzip), { headers: { ...headers, "content-encoding": "gzip" } });
}

function plain(status: number, body: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(body, { status, headers: { "content-type": "text/plain; charset=utf-8", ...headers } });
}
