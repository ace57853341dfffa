/** Builds the page on which an author debugs one action with the browser's developer tools (specification, Debug page). */
import type { PageEnvWithSession } from "../rules/env-script.js";
import { type AuthorCodeDocument, buildAuthorCodeDocument } from "./author-document.js";
import { escapeHtml } from "./web-assets.js";

export interface DebuggedAction {
  id: number;
  name: string;
  script: string;
  assets: AuthorCodeDocument["dependencies"];
}

/**
 * Builds the page for GET /v3/apps/:appId/actions/:actionId/compile?html. The page contains the action's script as JSON
 * data, and `/client/debug.js` runs it. So the browser never parses an author's text as HTML, and the developer tools
 * show the script under its own name.
 */
export function buildDebugPage(options: {
  action: DebuggedAction;
  env: PageEnvWithSession & { token: string };
  base: string;
}): {
  html: string;
  headers: Record<string, string>;
} {
  const { action, env, base } = options;
  const { id, name, script, assets } = action;
  const call = `await Svc.App.V3.Actions.runWithResult(${JSON.stringify(name)}, {})`;
  const body = `<h1>${escapeHtml(name)}</h1>
<p>Open the developer tools and call in the console:</p>
<pre><code>${escapeHtml(call)}</code></pre>
<p>The action runs in this page, with the payload that you pass and without settings. Breakpoints in
<code>${escapeHtml(`svc-action-${id}-${encodeURIComponent(name)}.js`)}</code> work. The page has no cookie and no storage, and
acts as a user of the app in the viewer.</p>`;
  return buildAuthorCodeDocument({
    title: `${name} · debug`,
    env,
    pageValues: { script },
    pathPrefix: base,
    bodyHtml: body,
    dependencies: assets,
    scriptPath: "/client/debug.js",
  });
}
