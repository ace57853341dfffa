/** Reads the JSON data that the service inserts into its own pages that run actions, in addition to `window.ENV`. */

export function readEmbeddedPageData(): Record<string, string | undefined> {
  return JSON.parse(document.getElementById("svc-page")?.textContent ?? "{}");
}
