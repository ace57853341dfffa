/** Serves the files that scripts/build-web.mjs built: the service's pages, their scripts and styles, and the client library. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fastifyStatic from "@fastify/static";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

/** Folder dist/web, relative to dist/src/api. */
const BUILT_FOLDER = fileURLToPath(new URL("../../web/", import.meta.url));

/** Page that the build wrote. `scriptsBefore` and `scriptsAfter` are the scripts that load before and after `script`. */
interface BuiltPage {
  title: string;
  script: string;
  scriptsBefore: string[];
  scriptsAfter: string[];
  /** Files that the page's script preloads, by the name of the part of the page that uses them. */
  parts: Record<string, string[]>;
  /** First API requests of the page, whose responses it preloads: `all` for every visitor, `signedIn` in addition for signed-in authors. */
  firstRequests: { all: string[]; signedIn: string[] };
  style: string | null;
}

/** Security headers of every page, including pages that run authors' code. */
export const PAGE_SECURITY_HEADERS = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
} as const;

/**
 * Headers of every page of the service itself. The page can load scripts only as files of this origin, never inline or by eval. Inline
 * styles are allowed, because Monaco and React set them. `connect-src 'self'` also allows websockets to the same host.
 */
export const SERVICE_PAGE_HEADERS = {
  ...PAGE_SECURITY_HEADERS,
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "worker-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    // Studio loads an app's files itself and shows them by blob URLs.
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

const HTML_ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => HTML_ENTITIES[character] ?? "");
}

/** Icon of Studio as SVG, visible on light and dark browser tabs. */
export const ICON_SVG =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath fill='%230f9384' d='M3 1h5a7 7 0 0 1 7 7v5a2 2 0 0 1-2 2H8a7 7 0 0 1-7-7V3a2 2 0 0 1 2-2z'/%3E%3C/svg%3E";

function renderPage(
  name: string,
  { title, script, scriptsBefore, scriptsAfter, parts, firstRequests, style }: BuiltPage,
  { base, signedIn: isSignedIn }: { base: string; signedIn: boolean },
): string {
  // Preload links make the browser request all files at once instead of one after the other.
  const createPreloadLinks = (files: string[]) =>
    files.map((file) => `\n<link rel="modulepreload" href="${escapeHtml(base + file)}">`).join("");
  const responsePreloadLinks = [...firstRequests.all, ...(isSignedIn ? firstRequests.signedIn : [])]
    .map((path) => `\n<link rel="preload" as="fetch" crossorigin href="${escapeHtml(base + path)}">`)
    .join("");
  const earlyLinks = responsePreloadLinks + createPreloadLinks(scriptsBefore) + createPreloadLinks(scriptsAfter);
  const styleLink = style === null ? "" : `\n<link rel="stylesheet" href="${escapeHtml(base + style)}">`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="${ICON_SVG}">${styleLink}${earlyLinks}
<script type="module" src="${escapeHtml(base + script)}"></script>
</head>
<body>
<noscript>This page needs JavaScript.</noscript>
<div id="${name}" data-parts="${escapeHtml(JSON.stringify(parts))}"></div>
</body>
</html>
`;
}

/** True if a browser loads the address as a page; false for a program that requests data. */
export function acceptsHtml(request: FastifyRequest): boolean {
  return (request.headers.accept ?? "").split(",").some((type) => type.trim().startsWith("text/html"));
}

export type PageName = "consent" | "graphiql" | "sign-in" | "studio";

/** Pages whose HTML other code builds; only the script and style sheet of such a page come from the web build. */
export type AssetBundleName = "docs";

export interface BuiltPageSender {
  /**
   * Sends a page with SERVICE_PAGE_HEADERS.
   * @param isSignedIn true if an author is signed in with this browser, so that the page preloads what an author needs
   */
  sendPage(reply: FastifyReply, name: PageName, isSignedIn?: boolean): FastifyReply;
  getAssetPaths(name: AssetBundleName): { script: string; style: string | null };
}

function registerStaticFiles(
  app: FastifyInstance,
  prefix: string,
  root: string,
  getHeaders: (path: string) => object,
): void {
  app.register(fastifyStatic, {
    root,
    prefix,
    decorateReply: false,
    preCompressed: true,
    index: false,
    cacheControl: false,
    setHeaders(reply, path) {
      reply.headers({ vary: "accept-encoding", "x-content-type-options": "nosniff", ...getHeaders(path) });
    },
  });
}

/** Headers of the client library. Pages of other origins may load it, because it contains no data of the service. */
const CLIENT_HEADERS = {
  "cache-control": "no-cache",
  "access-control-allow-origin": "*",
  "cross-origin-resource-policy": "cross-origin",
} as const;

const DECLARATION_HEADERS = { ...CLIENT_HEADERS, "content-type": "text/plain; charset=utf-8" } as const;

/**
 * Registers `/assets/*`, and `/client/*` (client library, its declarations, npm packages). Returns the object that sends the pages.
 * @param options.base path prefix of the service, usually ""
 * @throws if the build has not run
 */
export function registerWebAssets(app: FastifyInstance, { base = "", root = BUILT_FOLDER } = {}): BuiltPageSender {
  const builtPages = JSON.parse(readFileSync(`${root}/pages.json`, "utf8")) as Record<
    PageName | AssetBundleName,
    BuiltPage
  >;
  const renderPages = (isSignedIn: boolean) =>
    new Map(
      Object.entries(builtPages).map(([name, page]) => [name, renderPage(name, page, { base, signedIn: isSignedIn })]),
    );
  const [signedOutPages, signedInPages] = [renderPages(false), renderPages(true)];
  registerStaticFiles(app, "/assets/", `${root}/assets`, () => ({
    "cache-control": "public, max-age=31536000, immutable",
  }));
  registerStaticFiles(app, "/client/", `${root}/client`, (path) =>
    path.endsWith(".ts") ? DECLARATION_HEADERS : CLIENT_HEADERS,
  );
  return {
    sendPage(reply, name, isSignedIn = false) {
      const page = (isSignedIn ? signedInPages : signedOutPages).get(name);
      return reply.headers(SERVICE_PAGE_HEADERS).type("text/html; charset=utf-8").send(page);
    },
    getAssetPaths: (name) => ({ script: builtPages[name].script, style: builtPages[name].style }),
  };
}
