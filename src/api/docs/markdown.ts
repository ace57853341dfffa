/**
 * Renders the Markdown files of the documentation as HTML for browsers and as Markdown for programs, with working links. Read this file to
 * support another Markdown element.
 */
import MarkdownIt, { type Env, type Token } from "markdown-it";
import { escapeHtml } from "../web-assets.js";
import type { DocsLibrary, DocsLinkTarget, DocsPage } from "./library.js";

/** The service's address in examples and in the links of the Markdown for programs. `insertServiceAddress` replaces it. */
export const EXAMPLE_SERVICE_URL = "http://127.0.0.1:4000";
/** Matches the service's address in examples. Readers see the address of their own service in its place. */
const EXAMPLE_ADDRESS_PATTERN = /(https?|wss?):\/\/(?:127\.0\.0\.1|localhost):4000(?!\d)/g;

export interface DocsHeading {
  level: number;
  id: string;
  text: string;
}

export interface DocsSection extends DocsHeading {
  /** Text and code between this heading and the next heading, as Markdown without list and table marks. */
  body: string;
}

export interface RenderedDocsPage {
  html: string;
  headings: DocsHeading[];
  sections: DocsSection[];
}

interface MarkdownRenderState extends Env {
  page: DocsPage;
  headings: DocsHeading[];
  /** HTML ids that this page already uses, so that a second heading with the same text gets another id. */
  ids: Set<string>;
}

/**
 * Replaces the service's address in examples.
 * @param base address of the reader's service, without a trailing slash
 */
export function insertServiceAddress(text: string, base: string): string {
  return text.replaceAll(EXAMPLE_ADDRESS_PATTERN, (_match, scheme: string) =>
    scheme.startsWith("ws") ? base.replace(/^http/, "ws") : base,
  );
}

/** Returns the HTML id of a heading, as GitHub builds it. */
export const createHeadingId = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(" ", "-");

function createUniqueId(ids: Set<string>, text: string): string {
  const id = createHeadingId(text);
  let candidate = id;
  for (let number = 1; ids.has(candidate); number += 1) candidate = `${id}-${number}`;
  ids.add(candidate);
  return candidate;
}

const extractPlainText = (token: Token | undefined): string =>
  (token?.children ?? []).map(({ type, content }) => (type === "softbreak" ? " " : content)).join("");

export class DocsRenderer {
  readonly #library: DocsLibrary;
  readonly #prefix: string;
  readonly #markdown = new MarkdownIt({ html: true });

  /** @param prefix path before `/docs` if the service runs behind a proxy; usually "" */
  constructor(library: DocsLibrary, prefix: string) {
    this.#library = library;
    this.#prefix = prefix;
    const { rules } = this.#markdown.renderer;
    // Leaves HTML blocks out: the documentation contains HTML only as comments for the tests.
    rules.html_block = () => "";
    rules.html_inline = () => "";
    rules.table_open = () => '<div class="table" tabindex="0"><table>\n';
    rules.table_close = () => "</table></div>\n";
    rules.fence = (tokens, index) => {
      const { content, info } = tokens[index]!;
      return `<pre tabindex="0" data-language="${escapeHtml(info.trim())}"><code>${escapeHtml(content)}</code></pre>\n`;
    };
    this.#addHeadingIds();
    this.#addLinks();
  }

  #addHeadingIds(): void {
    this.#markdown.core.ruler.push("heading-ids", ({ tokens, env }) => {
      const { headings, ids } = env as MarkdownRenderState;
      for (const [index, token] of tokens.entries()) {
        if (token.type !== "heading_open") continue;
        const text = extractPlainText(tokens[index + 1]);
        const id = createUniqueId(ids, text);
        token.attrSet("id", id);
        headings.push({ level: Number(token.tag.slice(1)), id, text });
      }
    });
    this.#markdown.renderer.rules.heading_close = (tokens, index) => {
      const id = escapeHtml(String(tokens[index - 2]!.attrGet("id") ?? ""));
      const name = escapeHtml(extractPlainText(tokens[index - 1]));
      return ` <a class="anchor" href="#${id}" aria-label="Link to ${name}">#</a></${tokens[index]!.tag}>\n`;
    };
  }

  #addLinks(): void {
    this.#markdown.core.ruler.push("links", ({ tokens, env }) => {
      const { page } = env as MarkdownRenderState;
      for (const child of tokens.flatMap(({ children }) => children ?? [])) {
        if (child.type === "image") child.attrSet("src", this.#href(page, String(child.attrGet("src") ?? "")) ?? "");
        if (child.type !== "link_open") continue;
        const href = this.#href(page, String(child.attrGet("href") ?? ""));
        // A link to a file that the service does not serve becomes plain text.
        if (href === null) child.attrs = [];
        else child.attrSet("href", href);
      }
    });
  }

  #href(page: DocsPage, link: string): string | null {
    const target = this.#library.resolveLink(page, link);
    return createHref(target, this.#prefix, "");
  }

  render(page: DocsPage): RenderedDocsPage {
    const env: MarkdownRenderState = { page, headings: [], ids: new Set() };
    const tokens = this.#markdown.parse(page.markdown, env);
    const html = this.#markdown.renderer.render(tokens, this.#markdown.options, env);
    return { html, headings: env.headings, sections: splitSections(tokens, env.headings) };
  }
}

/**
 * Returns the URL of a link's target; null if the service does not serve the target.
 * @param base address before `/docs`
 * @param suffix "" for the HTML page, ".md" for the Markdown page
 */
function createHref(target: DocsLinkTarget, base: string, suffix: "" | ".md"): string | null {
  switch (target.kind) {
    case "page":
      return base + createDocsPath(target.slug, suffix) + target.hash;
    case "picture":
      return `${base}/docs/${target.path}`;
    case "address":
      return target.href.startsWith("/") ? base + target.href : target.href;
    case "missing":
      return null;
  }
}

/** Returns the address of a page, without a proxy's path prefix. */
export const createDocsPath = (slug: string, suffix: "" | ".md"): string =>
  slug === "" ? `/docs/${suffix === "" ? "" : "README.md"}` : `/docs/${slug}${suffix}`;

function splitSections(tokens: readonly Token[], headings: readonly DocsHeading[]): DocsSection[] {
  const sections: DocsSection[] = [];
  for (const { type, content } of tokens) {
    if (type === "heading_open") sections.push({ ...headings[sections.length]!, body: "" });
    else if (type === "inline" || type === "fence") {
      const section = sections.at(-1);
      if (section) section.body += `${content}\n`;
    }
  }
  return sections;
}

/**
 * Returns the page as Markdown for programs, with absolute links that start with EXAMPLE_SERVICE_URL. If the service does
 * not serve the file to which a link leads, the file's path replaces the link.
 */
export function createMarkdownWithAbsoluteLinks(library: DocsLibrary, page: DocsPage): string {
  let isInCodeBlock = false;
  const lines = page.markdown.split("\n").map((line) => {
    if (line.startsWith("```")) isInCodeBlock = !isInCodeBlock;
    if (isInCodeBlock) return line;
    const lineWithAbsoluteLinks = line.replaceAll(
      /(!?)\[([^[\]]*)\]\(([^()\s]+)\)/g,
      (match, imageMark: string, text: string, link: string) => {
        const target = library.resolveLink(page, link);
        return imageMark === "" && target.kind === "missing"
          ? `${text} (${target.path} in the installation's folder)`
          : match;
      },
    );
    return lineWithAbsoluteLinks.replaceAll(/\]\(([^()\s]+)\)/g, (match, link: string) => {
      const href = createHref(library.resolveLink(page, link), EXAMPLE_SERVICE_URL, ".md");
      return href === null ? match : `](${href})`;
    });
  });
  return lines.filter((line) => !/^<!--.*-->$/.test(line)).join("\n");
}
