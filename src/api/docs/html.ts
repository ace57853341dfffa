/** Builds the HTML around every documentation page: navigation, search field, table of contents. */
import { escapeHtml } from "../web-assets.js";
import type { DocsLibrary, DocsPage } from "./library.js";
import { createDocsPath, type DocsHeading } from "./markdown.js";
import type { DocsSearchHit } from "./search.js";

export interface DocsNavigationGroup {
  title: string;
  pages: DocsPage[];
}

export interface DocsPageLayout {
  /** Path before `/docs` if the service runs behind a proxy; usually "". */
  pathPrefix: string;
  navigation: readonly DocsNavigationGroup[];
  script: string;
  style: string;
  icon: string;
}

interface DocsPageContent {
  title: string;
  /** Path of the page below /docs/, such as `guides/triggers`; null for search results. */
  slug: string | null;
  contentHtml: string;
  headings: readonly DocsHeading[];
  query?: string;
}

/** Reads the navigation from the index page: bold text there starts a group, and each link after it adds a page to the group. */
export function readNavigation(library: DocsLibrary): DocsNavigationGroup[] {
  const index = library.findPageBySlug("");
  if (!index) return [{ title: "Pages", pages: [...library.pages] }];
  const groups: DocsNavigationGroup[] = [];
  for (const [, groupTitle, link] of index.markdown.matchAll(/\*\*([^*]+)\*\*|\]\(([^()\s]+)\)/g)) {
    if (link === undefined) {
      groups.push({ title: (groupTitle ?? "").trim(), pages: [] });
      continue;
    }
    const target = library.resolveLink(index, link);
    const page = target.kind === "page" ? library.findPageBySlug(target.slug) : undefined;
    const isListed = groups.some(({ pages }) => page !== undefined && pages.includes(page));
    if (page && page !== index && !isListed) groups.at(-1)?.pages.push(page);
  }
  return groups.filter(({ pages }) => pages.length > 0);
}

function renderNavigation({ pathPrefix, navigation }: DocsPageLayout, slug: string | null): string {
  const renderPageItem = (page: DocsPage) => {
    const currentAttribute = page.slug === slug ? ' aria-current="page"' : "";
    return `<li><a href="${escapeHtml(pathPrefix + createDocsPath(page.slug, ""))}"${currentAttribute}>${escapeHtml(page.title)}</a></li>`;
  };
  return navigation
    .map(({ title, pages }) => {
      const isOpen = slug === "" || pages.some((page) => page.slug === slug) ? " open" : "";
      const list = `<ul>${pages.map(renderPageItem).join("")}</ul>`;
      return `<details${isOpen}><summary>${escapeHtml(title)}</summary>${list}</details>`;
    })
    .join("\n");
}

function renderTableOfContents(headings: readonly DocsHeading[]): string {
  const sections = headings.filter(({ level }) => level === 2);
  if (sections.length < 2) return "";
  const items = sections.map(({ id, text }) => `<li><a href="#${escapeHtml(id)}">${escapeHtml(text)}</a></li>`);
  return `<aside class="contents" aria-label="On this page"><h2>On this page</h2><ul>${items.join("")}</ul></aside>`;
}

export function buildDocsPageHtml(
  layout: DocsPageLayout,
  { title, slug, contentHtml, headings, query = "" }: DocsPageContent,
): string {
  const { pathPrefix: prefix, script, style, icon } = layout;
  const markdownUrl = slug === null ? "" : escapeHtml(prefix + createDocsPath(slug, ".md"));
  const alternateLink = slug === null ? "" : `\n<link rel="alternate" type="text/markdown" href="${markdownUrl}">`;
  const markdownLink =
    slug === null ? "" : `\n<p class="source"><a href="${markdownUrl}">This page as Markdown</a></p>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · App Actions docs</title>
<link rel="icon" href="${icon}">
<link rel="stylesheet" href="${escapeHtml(prefix + style)}">${alternateLink}
<script type="module" src="${escapeHtml(prefix + script)}"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<a class="home" href="${escapeHtml(prefix)}/docs/">App Actions <em>Docs</em></a>
<form role="search" action="${escapeHtml(prefix)}/docs/search" method="get">
<input type="search" name="q" aria-label="Search the docs" placeholder="Search" maxlength="200" value="${escapeHtml(query)}">
<button>Search</button>
</form>
<nav aria-label="Service"><a href="${escapeHtml(prefix)}/studio">Studio</a> <a href="${escapeHtml(prefix)}/graphql">GraphiQL</a></nav>
</header>
<div class="columns">
<nav class="pages" aria-label="Pages">
${renderNavigation(layout, slug)}
</nav>
<main id="content" tabindex="-1">
${contentHtml}${markdownLink}
</main>
${renderTableOfContents(headings)}
</div>
</body>
</html>
`;
}

export function buildSearchResultsHtml(prefix: string, query: string, hits: readonly DocsSearchHit[]): string {
  const renderHit = ({ page, heading, address, excerpt }: DocsSearchHit) => {
    const name = heading === page ? page : `${page}: ${heading}`;
    return `<li><a href="${escapeHtml(prefix + address)}">${escapeHtml(name)}</a><p>${escapeHtml(excerpt)}</p></li>`;
  };
  const outcomeHtml =
    hits.length === 0
      ? `<p>No section contains these words.</p>`
      : `<ol class="results">${hits.map(renderHit).join("\n")}</ol>`;
  return `<h1>Search</h1>\n<p>Results for <q>${escapeHtml(query)}</q></p>\n${outcomeHtml}`;
}
