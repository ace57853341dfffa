/** What the service hands to one of its own pages that run actions, beside `window.ENV` (api/author-document.ts). */

export function pageData(): Record<string, string | undefined> {
  return JSON.parse(document.getElementById("svc-page")?.textContent ?? "{}");
}
