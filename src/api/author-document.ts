/**
 * Builds the HTML document of the service's pages that run authors' code in a person's browser, with its content security policy. The
 * policy's `sandbox` gives the document an opaque origin, so the document cannot use cookies, storage or pages of the service. All code in the document can read the
 * page's token.
 */
import { randomBytes } from "node:crypto";
import { buildWindowEnvScript, type PageEnvWithSession, toScriptLiteral } from "../rules/env-script.js";
import { escapeHtml, PAGE_SECURITY_HEADERS } from "./web-assets.js";

interface ScriptDependency {
  url: string;
  integrity?: string | null;
}

export interface AuthorCodeDocument {
  title: string;
  env: PageEnvWithSession & { token: string };
  /** Values that the script at `scriptPath` reads from the element `#svc-page`. */
  pageValues: Record<string, string>;
  /** Path prefix of the service behind a proxy, usually "". */
  pathPrefix: string;
  /** HTML that precedes the scripts. */
  bodyHtml: string;
  /** Scripts that the page loads before its own script, in this order. */
  dependencies: readonly ScriptDependency[];
  /** Path of the page's own script below `/client/`. */
  scriptPath: string;
}

/** Sandbox of the page. It forbids popups, so that a page cannot imitate the service's own pages in them. */
const SANDBOX_POLICY = "sandbox allow-scripts allow-forms allow-modals";

/** Matches origins that consist of characters of host names. A `;` in an origin could add a directive to the content security policy. */
const SAFE_ORIGIN_PATTERN = /^https?:\/\/[\w.:[\]-]+$/;

function buildContentPolicy(nonce: string, dependencies: readonly ScriptDependency[]): string {
  const origins = dependencies.map(({ url }) => new URL(url).origin);
  const otherOrigins = new Set(origins.filter((origin) => SAFE_ORIGIN_PATTERN.test(origin)));
  return [
    SANDBOX_POLICY,
    "default-src 'none'",
    ["script-src", `'nonce-${nonce}'`, ...otherOrigins].join(" "),
    "connect-src *",
    "img-src * data: blob:",
    "media-src * data: blob:",
    "font-src * data:",
    "style-src 'unsafe-inline'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

/**
 * Returns the HTML document and its headers. The document contains values as JSON with escaped `<`, so that no value can open or close an
 * HTML element.
 */
export function buildAuthorCodeDocument({
  title,
  env,
  pageValues: page,
  pathPrefix: base,
  bodyHtml: body,
  dependencies,
  scriptPath: script,
}: AuthorCodeDocument): {
  html: string;
  headers: Record<string, string>;
} {
  const nonce = randomBytes(18).toString("base64");
  const createScriptElement = ({ url, integrity }: ScriptDependency) => {
    const integrityAttributes = integrity ? ` integrity="${escapeHtml(integrity)}" crossorigin="anonymous"` : "";
    return `<script nonce="${nonce}" src="${escapeHtml(url)}"${integrityAttributes}></script>`;
  };
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="data:,">
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem;overflow-wrap:anywhere}pre{overflow-x:auto}code{font:14px/1.5 ui-monospace,monospace}</style>
<script type="application/json" id="svc-page">${toScriptLiteral(page)}</script>
<script nonce="${nonce}">${buildWindowEnvScript(env)}</script>
${createScriptElement({ url: `${base}/client/svc.js` })}
</head>
<body>
<noscript>This page needs JavaScript.</noscript>
${body}
${[...dependencies, { url: `${base}${script}` }].map(createScriptElement).join("\n")}
</body>
</html>
`;
  const headers = {
    ...PAGE_SECURITY_HEADERS,
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": buildContentPolicy(nonce, dependencies),
    "cross-origin-resource-policy": "same-origin",
    // The document contains a token, so caches must not store it.
    "cache-control": "no-store",
  };
  return { html, headers };
}
