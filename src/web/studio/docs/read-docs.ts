/** Reads pages and search results of the documentation, which the service itself serves. */
import { addCopyButtons } from "../../docs/copy-button.js";
import { resolveServiceUrl } from "../../service-address.js";
import { ApiError, throwOffline } from "../shared/api-error.js";

export interface DocsPage {
  title: string;
  contentNodes: Node[];
}

async function readMainElement(path: string): Promise<HTMLElement> {
  const response = await fetch(resolveServiceUrl(path)).catch(throwOffline);
  if (response.status === 404) throw new ApiError("NOT_FOUND", `the documentation has no page ${path}`);
  if (!response.ok) {
    throw new ApiError(
      "INTERNAL_ERROR",
      `the documentation page ${path} cannot be read (got HTTP status ${response.status})`,
    );
  }
  const html = await response.text().catch(throwOffline);
  const main = new DOMParser().parseFromString(html, "text/html").querySelector("main");
  if (!main) throw new ApiError("INTERNAL_ERROR", `the documentation page ${path} has no content`);
  return main;
}

/** Replaces the app ID in the examples by the ID of the open app. The service has already replaced its own URL. */
function insertAppId(main: HTMLElement, appId: number): void {
  for (const code of main.querySelectorAll("pre code")) {
    const text = code.textContent ?? "";
    const filledText = text
      .replaceAll(/\bSVC_APP=1\b/g, `SVC_APP=${appId}`)
      .replaceAll(/\/apps\/1\b/g, `/apps/${appId}`);
    // Leaves an example without placeholders unchanged, because new text would remove its syntax highlighting.
    if (filledText !== text) code.textContent = filledText;
  }
}

/** Reads a page of the documentation and prepares it for the panel. @throws ApiError if the page does not exist or cannot be read */
export async function readDocsPage(path: string, appId: number): Promise<DocsPage> {
  const main = await readMainElement(path);
  insertAppId(main, appId);
  const content = document.importNode(main, true);
  // Removes the links in headings that lead to the heading itself.
  for (const link of content.querySelectorAll(":is(h1, h2, h3, h4) > a[href^='#']")) link.remove();
  addCopyButtons(content);
  const heading = content.querySelector("h1");
  const title = heading?.textContent?.trim() ?? "Docs";
  heading?.remove();
  return { title, contentNodes: [...content.childNodes] };
}

export interface DocsSearchResult {
  name: string;
  /** Path of a documentation page, with a section as its fragment. */
  path: string;
}

/** Returns the path of a documentation page of this service. Returns null if the URL leads elsewhere. */
export function toDocsPath(address: URL): string | null {
  const base = resolveServiceUrl("/docs").pathname;
  const isDocs =
    address.origin === location.origin && (address.pathname === base || address.pathname.startsWith(`${base}/`));
  return isDocs ? `/docs${address.pathname.slice(base.length)}${address.hash}` : null;
}

/** Returns the sections of the documentation that contain the words. @throws ApiError if the search fails */
export async function searchDocs(query: string): Promise<DocsSearchResult[]> {
  const main = await readMainElement(`/docs/search?q=${encodeURIComponent(query)}`);
  return [...main.querySelectorAll<HTMLAnchorElement>(".results a")].flatMap((link) => {
    const path = toDocsPath(new URL(link.getAttribute("href") ?? "", location.origin));
    return path === null ? [] : [{ name: link.textContent ?? "", path }];
  });
}
