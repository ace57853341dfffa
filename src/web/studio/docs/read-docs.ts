/** Reads pages and search results of the documentation that this service serves. */
import { addCopyButtons } from "../../docs/copy-button.js";
import { serviceAddress } from "../../service-address.js";
import { ApiError } from "../shared/api.js";

/** A documentation page, ready to be shown. */
export interface DocsPage {
  title: string;
  nodes: Node[];
}

async function readMainElement(path: string): Promise<HTMLElement> {
  const response = await fetch(serviceAddress(path));
  if (!response.ok) throw new ApiError("NOT_FOUND", `the documentation has no page ${path}`);
  const main = new DOMParser().parseFromString(await response.text(), "text/html").querySelector("main");
  if (!main) throw new ApiError("INTERNAL_ERROR", `the documentation page ${path} has no content`);
  return main;
}

/** Inserts the reader's app ID into examples. The service has already inserted its own URL. */
function insertAppId(main: HTMLElement, appId: number): void {
  for (const code of main.querySelectorAll("pre code")) {
    const text = code.textContent ?? "";
    const filledText = text
      .replaceAll(/\bSVC_APP=1\b/g, `SVC_APP=${appId}`)
      .replaceAll(/\/apps\/1\b/g, `/apps/${appId}`);
    // Examples without changes keep the elements of their syntax highlighting.
    if (filledText !== text) code.textContent = filledText;
  }
}

/** Reads a page of the documentation. @throws ApiError */
export async function readDocsPage(path: string, appId: number): Promise<DocsPage> {
  const main = await readMainElement(path);
  insertAppId(main, appId);
  const content = document.importNode(main, true);
  // Removes the links in headings that lead to the headings themselves.
  for (const link of content.querySelectorAll(":is(h1, h2, h3, h4) > a[href^='#']")) link.remove();
  addCopyButtons(content);
  const heading = content.querySelector("h1");
  const title = heading?.textContent?.trim() ?? "Docs";
  heading?.remove();
  return { title, nodes: [...content.childNodes] };
}

export interface DocsHit {
  name: string;
  /** Path of the page, with its section as the fragment. */
  path: string;
}

/** Returns the path of a documentation page within the service; null for other URLs. */
export function toDocsPath(address: URL): string | null {
  const base = serviceAddress("/docs").pathname;
  const isDocs =
    address.origin === location.origin && (address.pathname === base || address.pathname.startsWith(`${base}/`));
  return isDocs ? `/docs${address.pathname.slice(base.length)}${address.hash}` : null;
}

export async function searchDocs(query: string): Promise<DocsHit[]> {
  const main = await readMainElement(`/docs/search?q=${encodeURIComponent(query)}`);
  return [...main.querySelectorAll<HTMLAnchorElement>(".results a")].flatMap((link) => {
    const path = toDocsPath(new URL(link.getAttribute("href") ?? "", location.origin));
    return path === null ? [] : [{ name: link.textContent ?? "", path }];
  });
}
