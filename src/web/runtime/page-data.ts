/** Reads the data that the service puts into its own pages that run actions, in addition to `window.ENV`. */

export function pageData(): Record<string, string | undefined> {
  return JSON.parse(document.getElementById("svc-page")?.textContent ?? "{}");
}
