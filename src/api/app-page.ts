/** The page of an app, live or in the viewer. Holds the page's own session and the app's public settings; knows no cookie. */
import { randomBytes } from "node:crypto";
import { escapeHtml, PAGE_HEADERS } from "./web-assets.js";

export interface AppPage {
  name: string;
  /** The script that sets `window.ENV`; holds no end of a script element. */
  envScript: string;
  /** The page's own runtime token. */
  token: string;
}

/*
 * The page runs what the app's authors wrote, under the service's own address. `sandbox` without `allow-same-origin` gives it an
 * origin of its own: no cookie, no storage and no other page of the service is in its reach, and its session is the one it is
 * given here. Scripts need the nonce, which the client library hands on to those that it loads; nothing is evaluated from text.
 */
function policy(nonce: string): string {
  return [
    "sandbox allow-scripts allow-forms allow-modals allow-popups",
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
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

export function appPage({ name, envScript, token }: AppPage): { html: string; headers: Record<string, string> } {
  const nonce = randomBytes(18).toString("base64");
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(name)}</title>
<link rel="icon" href="data:,">
<script nonce="${nonce}">${envScript}</script>
<script nonce="${nonce}" src="/client/svc.js"></script>
</head>
<body>
<noscript>This page needs JavaScript.</noscript>
<main></main>
<script nonce="${nonce}" src="/client/example.js" data-token="${escapeHtml(token)}" data-name="${escapeHtml(name)}"></script>
</body>
</html>
`;
  const headers = {
    ...PAGE_HEADERS,
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy(nonce),
    // It holds a token.
    "cache-control": "no-store",
  };
  return { html, headers };
}

/** A page that says one thing. */
export function messagePage(title: string, text: string): { html: string; headers: Record<string, string> } {
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escapeHtml(title)}</title>
<link rel="icon" href="data:,">
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}</style>
</head>
<body>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(text)}</p>
</body>
</html>
`;
  return {
    html,
    headers: { ...PAGE_HEADERS, "content-type": "text/html; charset=utf-8", "cache-control": "no-store" },
  };
}
