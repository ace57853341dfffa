/** GET /docs/*, /llms.txt and /llms-full.txt: serves the documentation as web pages, as Markdown, and as one text. Needs no credential. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import fastifyStatic from "@fastify/static";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { LRUCache } from "lru-cache";
import { ActionError } from "../../errors.js";
import { matchesIfNoneMatch } from "../../rules/precondition.js";
import { getPathPrefix } from "../page-origin.js";
import { type BuiltPageSender, escapeHtml, ICON_SVG, PAGE_SECURITY_HEADERS } from "../web-assets.js";
import { buildDocsPageHtml, buildSearchResultsHtml, type DocsPageLayout, readNavigation } from "./html.js";
import { DocsLibrary, type DocsPage } from "./library.js";
import {
  createDocsPath,
  createMarkdownWithAbsoluteLinks,
  DocsRenderer,
  EXAMPLE_SERVICE_URL,
  insertServiceAddress,
} from "./markdown.js";
import { DocsSearch } from "./search.js";

const ROOT_FILES = ["README.md", "BENCHMARKS.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md"];

const PAGE_HEADERS = {
  ...PAGE_SECURITY_HEADERS,
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
} as const;

/** Headers of a picture. If a person opens its address, the picture cannot run scripts (an SVG could). */
const PICTURE_HEADERS = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  "cache-control": "no-cache",
} as const;

const SITE_NAME = "Svc App Actions";
/** Maximum length of a `Host` header that the documentation repeats in its texts: a host name of 255 characters, and a port. */
const HOST_MAX_CHARACTERS = 261;
const HOST_HEADER_PATTERN = /^[\w.-]+(?::\d{1,5})?$|^\[[\da-f:.]+\](?::\d{1,5})?$/i;

export interface DocsOptions {
  pages: BuiltPageSender;
  /** Address of the service, used if a request has no valid `Host` header. */
  baseUrl: string;
  /** The setting PUBLIC_URL. If null, examples contain the address from the reader's request. */
  publicUrl: string | null;
  /** Folder of another installation, for tests. */
  root?: string;
}

/** The documentation of this installation, for the /docs routes and for agents. */
export interface DocsSite {
  library: DocsLibrary;
  search: DocsSearch;
  /** Returns a page as Markdown with absolute links that start with `base`. */
  renderMarkdown(page: DocsPage, base: string): string;
  /** Returns the service's address for the sender of this request, without a trailing slash. */
  findServiceAddress(request: FastifyRequest): string;
}

/** The documentation of this installation, which a process reads once. */
let installedLibrary: DocsLibrary | null = null;

function createDocsSite({ baseUrl, publicUrl, root }: DocsOptions, prefix: string) {
  if (root === undefined) installedLibrary ??= new DocsLibrary();
  const library = root === undefined ? installedLibrary! : new DocsLibrary(root);
  const renderer = new DocsRenderer(library, prefix);
  // Finding the links of all pages takes 40 ms of processor time, so each page's Markdown is created once for all hosts.
  const markdownByPage = new Map<DocsPage, string>();
  const docs: DocsSite = {
    library,
    search: new DocsSearch(library, renderer),
    renderMarkdown(page, base) {
      const markdown = markdownByPage.get(page) ?? createMarkdownWithAbsoluteLinks(library, page);
      markdownByPage.set(page, markdown);
      return insertServiceAddress(markdown, base);
    },
    findServiceAddress({ headers: { host } }) {
      if (publicUrl !== null) return publicUrl;
      return host !== undefined && host.length <= HOST_MAX_CHARACTERS && HOST_HEADER_PATTERN.test(host)
        ? `http://${host}`
        : baseUrl;
    },
  };
  return { docs, renderer };
}

/** Returns the text of /llms.txt: a list of all pages for language models (llmstxt.org). */
function buildLlmsText({ library }: DocsSite, base: string): string {
  const groups = readNavigation(library).map(({ title, pages }) => {
    const items = pages.map(({ title: name, slug, summary }) => `- [${name}](${base}/docs/${slug}.md): ${summary}`);
    return `## ${title}\n\n${items.join("\n")}`;
  });
  const files = [
    `- [Everything in one file](${base}/llms-full.txt): all pages of the documentation, without changelog, benchmarks, contributing and decision records`,
    `- [OpenAPI](${base}/v1/openapi.json): the REST routes`,
    `- [TypeScript declarations](${base}/client/svc.d.ts): all that \`Svc\` offers to an action`,
  ];
  return [
    `# ${SITE_NAME}`,
    "> Self-hosted serverless functions for apps: JavaScript actions that run on demand, on a schedule and on events, with settings, data sources, media and messages.",
    ...groups,
    `## For programs\n\n${files.join("\n")}\n`,
  ].join("\n\n");
}

/** Pages about the project instead of its use. /llms-full.txt leaves them out, because programs load that file as a whole. */
const SLUGS_NOT_IN_FULL_TEXT: readonly string[] = ["changelog", "benchmarks", "contributing", "internals/adr"];

/** Maximum number of stored texts of /llms-full.txt. There is one for each address of the service, and each has more than 1 MB. */
const CACHED_FULL_TEXTS_MAX = 4;

/** Text of a response with its ETag. */
interface TextWithEtag {
  text: string;
  etag: string;
}

function addEtag(text: string): TextWithEtag {
  return { text, etag: `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"` };
}

/** Returns a function that returns the text of /llms-full.txt for an address of the service. The pages are joined only once. */
function createLlmsFullText(docs: DocsSite): (base: string) => TextWithEtag {
  let text: string | null = null;
  const textsByBase = new LRUCache<string, TextWithEtag>({ max: CACHED_FULL_TEXTS_MAX });
  function joinPages(): string {
    const index = docs.library.findPageBySlug("");
    const listedPages = readNavigation(docs.library).flatMap(({ pages }) => pages);
    return [...(index ? [index] : []), ...listedPages]
      .filter(({ slug }) => !SLUGS_NOT_IN_FULL_TEXT.includes(slug))
      .map(
        (page) =>
          `<!-- ${EXAMPLE_SERVICE_URL}/docs/${page.slug} -->\n\n${docs.renderMarkdown(page, EXAMPLE_SERVICE_URL).trim()}\n`,
      )
      .join("\n\n");
  }
  return (base) => {
    const cachedText = textsByBase.get(base);
    if (cachedText) return cachedText;
    text ??= joinPages();
    const textForBase = addEtag(insertServiceAddress(text, base));
    textsByBase.set(base, textForBase);
    return textForBase;
  };
}

/** Sends a text with its ETag, or 304 if the browser has the same text. */
function sendWithEtag(
  request: FastifyRequest,
  reply: FastifyReply,
  type: string,
  content: string | TextWithEtag,
): FastifyReply {
  const { text, etag } = typeof content === "string" ? addEtag(content) : content;
  reply.headers({ "cache-control": "no-cache", etag, "x-content-type-options": "nosniff" });
  if (matchesIfNoneMatch(request.headers["if-none-match"], etag)) return reply.code(304).send();
  return reply.type(type).send(text);
}

const HTML_TYPE = "text/html; charset=utf-8";
const MARKDOWN_TYPE = "text/markdown; charset=utf-8";
const PLAIN_TEXT_TYPE = "text/plain; charset=utf-8";

function registerRootFiles(app: FastifyInstance, { docs }: { docs: DocsSite }): void {
  for (const file of ROOT_FILES) {
    app.get(`/${file}`, async (request, reply) => {
      const page = docs.library.findPageByFile(file);
      if (page)
        return sendWithEtag(request, reply, MARKDOWN_TYPE, docs.renderMarkdown(page, docs.findServiceAddress(request)));
      const text = await readFile(join(docs.library.root, file), "utf8").catch(() => {
        throw new ActionError("NOT_FOUND", `this installation of the service does not contain the file ${file}`);
      });
      return sendWithEtag(request, reply, PLAIN_TEXT_TYPE, text);
    });
  }
}

export function registerDocs(app: FastifyInstance, options: DocsOptions): DocsSite {
  const prefix = getPathPrefix(options.baseUrl);
  const { docs, renderer } = createDocsSite(options, prefix);
  const { script, style } = options.pages.getAssetPaths("docs");
  const layout: DocsPageLayout = {
    pathPrefix: prefix,
    navigation: readNavigation(docs.library),
    script,
    style: style ?? "",
    icon: ICON_SVG,
  };
  const htmlByPage = new Map<DocsPage, string>();

  function renderHtml(page: DocsPage): string {
    const cachedHtml = htmlByPage.get(page);
    if (cachedHtml !== undefined) return cachedHtml;
    const { html, headings } = renderer.render(page);
    const pageHtml = buildDocsPageHtml(layout, { title: page.title, slug: page.slug, contentHtml: html, headings });
    htmlByPage.set(page, pageHtml);
    return pageHtml;
  }

  function sendPage(request: FastifyRequest, reply: FastifyReply, path: string): FastifyReply {
    const isMarkdown = path.endsWith(".md");
    const name = isMarkdown ? path.slice(0, -".md".length) : path;
    const page = docs.library.findPageBySlug(/^(?:readme|index)$/i.test(name) ? "" : name);
    if (!page) throw new ActionError("NOT_FOUND", "the documentation has no page with this address");
    if (page.slug !== "" && page.slug !== name) {
      return reply.redirect(prefix + createDocsPath(page.slug, isMarkdown ? ".md" : ""), 301);
    }
    const base = docs.findServiceAddress(request);
    if (isMarkdown) return sendWithEtag(request, reply, MARKDOWN_TYPE, docs.renderMarkdown(page, base));
    return sendWithEtag(
      request,
      reply.headers(PAGE_HEADERS),
      HTML_TYPE,
      insertServiceAddress(renderHtml(page), escapeHtml(base)),
    );
  }

  app.register(fastifyStatic, {
    root: join(docs.library.root, "docs/pictures"),
    prefix: "/docs/pictures/",
    decorateReply: false,
    index: false,
    cacheControl: false,
    setHeaders: (reply) => {
      reply.headers(PICTURE_HEADERS);
    },
  });
  app.get<{ Querystring: { q?: string | string[] } }>("/docs/search", async (request, reply) => {
    const query = [request.query.q ?? ""].flat()[0]!.slice(0, 200);
    const resultsHtml = buildSearchResultsHtml(prefix, query, await docs.search.find(query));
    const html = buildDocsPageHtml(layout, {
      title: "Search",
      slug: null,
      contentHtml: resultsHtml,
      headings: [],
      query,
    });
    return sendWithEtag(request, reply.headers(PAGE_HEADERS), HTML_TYPE, html);
  });
  app.get("/docs", (request, reply) => sendPage(request, reply, "README"));
  app.get("/docs.md", (request, reply) => sendPage(request, reply, "README.md"));
  app.get<{ Params: { "*": string } }>("/docs/*", (request, reply) =>
    sendPage(request, reply, request.params["*"].replace(/\/$/, "") || "README"),
  );
  app.get("/llms.txt", (request, reply) =>
    sendWithEtag(request, reply, PLAIN_TEXT_TYPE, buildLlmsText(docs, docs.findServiceAddress(request))),
  );
  const llmsFullText = createLlmsFullText(docs);
  app.get("/llms-full.txt", (request, reply) =>
    sendWithEtag(request, reply, PLAIN_TEXT_TYPE, llmsFullText(docs.findServiceAddress(request))),
  );
  registerRootFiles(app, { docs });
  return docs;
}
