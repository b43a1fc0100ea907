import { Problem } from "./problem.ts";

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
};

/** Adds the headers. Answers without a cache policy are not cached. */
export function secured(response: Response, isHttps: boolean): Response {
  const { headers } = response;
  for (const [name, value] of Object.entries(HEADERS)) headers.set(name, value);
  if (isHttps) headers.set("strict-transport-security", "max-age=31536000");
  if (!headers.has("cache-control")) headers.set("cache-control", "no-store");
  return response;
}

/**
 * Throws for a change that may come from another site's page: by the browser's fetch metadata, else
 * by the origin. A cookie without either is refused. No CSRF tokens are needed.
 */
export function refuseForeign(
  request: Request,
  { hasCookie, publicOrigin }: { readonly hasCookie: boolean; readonly publicOrigin: string | undefined },
): void {
  if (request.method === "GET" || request.method === "HEAD") return;
  const site = request.headers.get("sec-fetch-site");
  if (site === "same-origin" || site === "none") return;
  const origin = request.headers.get("origin");
  const { host, origin: asked } = new URL(request.url);
  const expected = publicOrigin ?? asked;
  const isOurs = origin === publicOrigin || (origin !== null && URL.canParse(origin) && new URL(origin).host === host);
  if (site === null && (origin === null ? !hasCookie : isOurs)) return;
  throw new Problem(
    "cross-origin",
    `the request came from ${origin ?? site ?? "a page without origin"}, expected was ${expected}`,
    {
      more: { seen: origin ?? site, expected },
    },
  );
}
