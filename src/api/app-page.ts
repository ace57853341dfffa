/** Builds the HTML of an app's page, and of a page that shows only a message. */
import type { PageEnvWithSession } from "../rules/env-script.js";
import { buildAuthorCodeDocument } from "./author-document.js";
import { escapeHtml, SERVICE_PAGE_HEADERS } from "./web-assets.js";

/** Builds the page of an app: the live page at `/apps/:id`, or the viewer, a preview in which editors run drafts. */
export function buildAppPage(options: { name: string; env: PageEnvWithSession & { token: string }; base: string }): {
  html: string;
  headers: Record<string, string>;
} {
  const { name, env, base } = options;
  const page = { name };
  const scriptPath = "/client/app-page.js";
  return buildAuthorCodeDocument({
    title: name,
    env,
    pageValues: page,
    pathPrefix: base,
    bodyHtml: "<main></main>",
    dependencies: [],
    scriptPath,
  });
}

export function buildMessagePage(title: string, text: string): { html: string; headers: Record<string, string> } {
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
    headers: { ...SERVICE_PAGE_HEADERS, "content-type": "text/html; charset=utf-8", "cache-control": "no-store" },
  };
}
