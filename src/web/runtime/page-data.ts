/** Data that the service passes to its own pages that run actions, besides `window.ENV` (api/author-document.ts). */

export function pageData(): Record<string, string | undefined> {
  return JSON.parse(document.getElementById("svc-page")?.textContent ?? "{}");
}
