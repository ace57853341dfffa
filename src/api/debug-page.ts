/** The page that runs one action under the developer tools (specification, Debug page). Holds no settings, no code. */
import { escapeHtml, PAGE_HEADERS } from "./web-assets.js";

export interface DebuggedAction {
  appId: number;
  id: number;
  name: string;
  assets: readonly { url: string }[];
}

/** Packages from elsewhere are the author's choice, and so is what the code calls; frames and plugins are not needed. */
function policy(assets: DebuggedAction["assets"]): string {
  const elsewhere = new Set(assets.map(({ url }) => new URL(url).origin));
  return [
    "default-src 'none'",
    `script-src ${["'self'", ...elsewhere].join(" ")}`,
    "connect-src *",
    "img-src * data: blob:",
    "media-src * data: blob:",
    "style-src 'unsafe-inline'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

/**
 * For GET /v3/apps/:appId/actions/:actionId/compile?html. The code itself comes by the same address without `?html`,
 * so that the tools show it under its own name.
 */
export function debugPage({ appId, id, name, assets }: DebuggedAction): {
  html: string;
  headers: Record<string, string>;
} {
  const script = (src: string, more = "") => `<script src="${escapeHtml(src)}"${more}></script>`;
  const call = `await Svc.App.V3.Actions.runWithResult(${JSON.stringify(name)}, {})`;
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escapeHtml(name)} · debug</title>
<link rel="icon" href="data:,">
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}code{font:14px/1.5 ui-monospace,monospace}</style>
</head>
<body>
<h1>${escapeHtml(name)}</h1>
<p>Open the developer tools and call in the console:</p>
<pre><code>${escapeHtml(call)}</code></pre>
<p>The action runs in this page, with the payload given and without settings. Breakpoints in
<code>${escapeHtml(`svc-action-${id}-${encodeURIComponent(name)}.js`)}</code> hold.</p>
${script("/client/svc.js")}
${assets.map(({ url }) => script(url)).join("\n")}
${script(`/v3/apps/${appId}/actions/${id}/compile`)}
${script("/client/debug.js", ` data-app-id="${appId}"`)}
</body>
</html>
`;
  const headers = {
    ...PAGE_HEADERS,
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": policy(assets),
  };
  return { html, headers };
}
