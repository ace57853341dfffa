/** Serves what scripts/build-web.mjs made: pages, their assets, the client library. Knows no action and no caller. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fastifyStatic from "@fastify/static";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

/** dist/web, seen from dist/src/api. */
const BUILT = fileURLToPath(new URL("../../web/", import.meta.url));

/** A built page: the addresses of its script and of what that imports, at once and next as a rule. */
interface BuiltPage {
  title: string;
  script: string;
  needs: string[];
  next: string[];
  /** Files of the parts that its script loads later, by the part's name. The script preloads them. */
  parts: Record<string, string[]>;
  /** What it asks the service first, and what more in a browser in which an author is signed in. */
  asks: { all: string[]; signedIn: string[] };
  style: string | null;
}

/** For every page, also those that run authors' code. */
export const HARDENING = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
} as const;

/**
 * For every page of the service itself. Scripts are files of this origin, never inline and never eval; styles may be
 * inline because Monaco and React set them so. `connect-src 'self'` covers the websocket on the same host.
 */
export const PAGE_HEADERS = {
  ...HARDENING,
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "worker-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    // What Studio shows of an app's files it has read itself: such addresses are of its own making.
    "img-src 'self' data: blob:",
    "media-src blob:",
    "font-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-cache",
} as const;

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** For text and for attribute values in quotes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}

/** The mark of Studio's heading, readable on light and dark tabs. */
export const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath fill='%230f9384' d='M3 1h5a7 7 0 0 1 7 7v5a2 2 0 0 1-2 2H8a7 7 0 0 1-7-7V3a2 2 0 0 1 2-2z'/%3E%3C/svg%3E";

function renderPage(
  name: string,
  { title, script, needs, next, parts, asks, style }: BuiltPage,
  { base, signedIn }: { base: string; signedIn: boolean },
): string {
  // Named here, all are asked for at once and not one after the other's arrival.
  const preload = (files: string[]) =>
    files.map((file) => `\n<link rel="modulepreload" href="${escapeHtml(base + file)}">`).join("");
  // As a script's fetch asks for it, which then finds it here.
  const answers = [...asks.all, ...(signedIn ? asks.signedIn : [])]
    .map((path) => `\n<link rel="preload" as="fetch" crossorigin href="${escapeHtml(base + path)}">`)
    .join("");
  const early = answers + preload(needs) + preload(next);
  const link = style === null ? "" : `\n<link rel="stylesheet" href="${escapeHtml(base + style)}">`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${ICON}">${link}${early}
<script type="module" src="${escapeHtml(base + script)}"></script>
</head>
<body>
<noscript>This page needs JavaScript.</noscript>
<div id="${name}" data-parts="${escapeHtml(JSON.stringify(parts))}"></div>
</body>
</html>
`;
}

/** True for a browser that opens an address, false for a client that asks for data there (GET /graphql serves both). */
export function wantsPage(request: FastifyRequest): boolean {
  return (request.headers.accept ?? "").split(",").some((type) => type.trim().startsWith("text/html"));
}

export type PageName = "consent" | "graphiql" | "sign-in" | "studio";

/** Pages whose HTML is made elsewhere; only their script and style are built. */
export type AssetsName = "docs";

/** Answers requests with the built pages. */
export interface WebPages {
  /** Sends a page with PAGE_HEADERS. @param signedIn whether an author is, in the browser that asks: a hint what to load early */
  send(reply: FastifyReply, name: PageName, signedIn?: boolean): FastifyReply;
  /** Returns the paths of the script and the style sheet. */
  assets(name: AssetsName): { script: string; style: string | null };
}

function registerFiles(app: FastifyInstance, prefix: string, root: string, headersOf: (path: string) => object): void {
  app.register(fastifyStatic, {
    root,
    prefix,
    decorateReply: false,
    preCompressed: true,
    index: false,
    cacheControl: false,
    setHeaders(reply, path) {
      reply.headers({ vary: "accept-encoding", "x-content-type-options": "nosniff", ...headersOf(path) });
    },
  });
}

/**
 * The client library is loaded by pages of other origins too, which is safe: it holds no data. Their browsers ask each
 * time whether it changed.
 */
const CLIENT_HEADERS = {
  "cache-control": "no-cache",
  "access-control-allow-origin": "*",
  "cross-origin-resource-policy": "cross-origin",
} as const;

const DECLARATIONS = { ...CLIENT_HEADERS, "content-type": "text/plain; charset=utf-8" } as const;

/**
 * Registers `/assets/*` (names hold a hash of the content, so they never change) and `/client/*` (the library, its
 * declarations, the packages) and returns what sends the pages. `base` is the path before the service's own, "" as a rule.
 * @throws when the build has not run
 */
export function registerWebAssets(app: FastifyInstance, { base = "", root = BUILT } = {}): WebPages {
  const built = JSON.parse(readFileSync(`${root}/pages.json`, "utf8")) as Record<PageName | AssetsName, BuiltPage>;
  const rendered = (signedIn: boolean) =>
    new Map(Object.entries(built).map(([name, page]) => [name, renderPage(name, page, { base, signedIn })]));
  const [signedOutPages, signedInPages] = [rendered(false), rendered(true)];
  registerFiles(app, "/assets/", `${root}/assets`, () => ({ "cache-control": "public, max-age=31536000, immutable" }));
  registerFiles(app, "/client/", `${root}/client`, (path) => (path.endsWith(".ts") ? DECLARATIONS : CLIENT_HEADERS));
  return {
    send(reply, name, signedIn = false) {
      const page = (signedIn ? signedInPages : signedOutPages).get(name);
      return reply.headers(PAGE_HEADERS).type("text/html; charset=utf-8").send(page);
    },
    assets: (name) => ({ script: built[name].script, style: built[name].style }),
  };
}
