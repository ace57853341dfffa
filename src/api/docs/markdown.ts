/**
 * Renders the documentation's Markdown as HTML with working links, and as Markdown for programs. Read this file to add an element to the
 * pages.
 */
import MarkdownIt, { type Env, type Token } from "markdown-it";
import { escapeHtml } from "../web-assets.js";
import type { DocsLibrary, DocsPage, LinkTarget } from "./library.js";

/** Matches the address of the service in the examples. Readers see the address of their own service instead. */
const EXAMPLE_ADDRESS = /(https?|wss?):\/\/(?:127\.0\.0\.1|localhost):4000(?!\d)/g;

export interface DocsHeading {
  level: number;
  id: string;
  text: string;
}

export interface DocsSection extends DocsHeading {
  /** Text below the heading, without markup. */
  body: string;
}

export interface RenderedPage {
  html: string;
  headings: DocsHeading[];
  sections: DocsSection[];
}

interface RenderEnvironment extends Env {
  page: DocsPage;
  headings: DocsHeading[];
  /** Ids that this page has used, so that two headings with the same text get different ones. */
  ids: Set<string>;
}

/** Replaces the address in examples by the reader's. @param base without a trailing slash */
export function insertServiceAddress(text: string, base: string): string {
  return text.replaceAll(EXAMPLE_ADDRESS, (_match, scheme: string) =>
    scheme.startsWith("ws") ? base.replace(/^http/, "ws") : base,
  );
}

/** Returns the id of a heading, as GitHub builds it. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(" ", "-");

function uniqueId(ids: Set<string>, text: string): string {
  const id = anchorOf(text);
  let candidate = id;
  for (let number = 1; ids.has(candidate); number += 1) candidate = `${id}-${number}`;
  ids.add(candidate);
  return candidate;
}

const textOf = (token: Token | undefined): string =>
  (token?.children ?? []).map(({ type, content }) => (type === "softbreak" ? " " : content)).join("");

export class DocsRenderer {
  readonly #library: DocsLibrary;
  readonly #prefix: string;
  readonly #markdown = new MarkdownIt({ html: true });

  /** @param prefix path of the service behind a proxy; usually "" */
  constructor(library: DocsLibrary, prefix: string) {
    this.#library = library;
    this.#prefix = prefix;
    const { rules } = this.#markdown.renderer;
    // Removes HTML blocks: the only HTML in the pages is comments for the tests.
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
      const { headings, ids } = env as RenderEnvironment;
      for (const [at, token] of tokens.entries()) {
        if (token.type !== "heading_open") continue;
        const text = textOf(tokens[at + 1]);
        const id = uniqueId(ids, text);
        token.attrSet("id", id);
        headings.push({ level: Number(token.tag.slice(1)), id, text });
      }
    });
    this.#markdown.renderer.rules.heading_close = (tokens, index) => {
      const id = escapeHtml(String(tokens[index - 2]!.attrGet("id") ?? ""));
      const name = escapeHtml(textOf(tokens[index - 1]));
      return ` <a class="anchor" href="#${id}" aria-label="Link to ${name}">#</a></${tokens[index]!.tag}>\n`;
    };
  }

  #addLinks(): void {
    this.#markdown.core.ruler.push("links", ({ tokens, env }) => {
      const { page } = env as RenderEnvironment;
      for (const child of tokens.flatMap(({ children }) => children ?? [])) {
        if (child.type === "image") child.attrSet("src", this.#href(page, String(child.attrGet("src") ?? "")) ?? "");
        if (child.type !== "link_open") continue;
        const href = this.#href(page, String(child.attrGet("href") ?? ""));
        // A link to a file that is not served stays as text.
        if (href === null) child.attrs = [];
        else child.attrSet("href", href);
      }
    });
  }

  #href(page: DocsPage, link: string): string | null {
    const target = this.#library.resolve(page, link);
    return hrefOf(target, this.#prefix, "");
  }

  render(page: DocsPage): RenderedPage {
    const env: RenderEnvironment = { page, headings: [], ids: new Set() };
    const tokens = this.#markdown.parse(page.markdown, env);
    const html = this.#markdown.renderer.render(tokens, this.#markdown.options, env);
    return { html, headings: env.headings, sections: sectionsOf(tokens, env.headings) };
  }
}

/** @param suffix end of a page's address: "" for the web page, ".md" for Markdown */
function hrefOf(target: LinkTarget, base: string, suffix: "" | ".md"): string | null {
  switch (target.kind) {
    case "page":
      return base + addressOf(target.slug, suffix) + target.hash;
    case "picture":
      return `${base}/docs/${target.path}`;
    case "address":
      return target.href.startsWith("/") ? base + target.href : target.href;
    case "missing":
      return null;
  }
}

/** Returns the address of a page. A proxy's path prefix is not part of it. */
export const addressOf = (slug: string, suffix: "" | ".md"): string =>
  slug === "" ? `/docs/${suffix === "" ? "" : "README.md"}` : `/docs/${slug}${suffix}`;

function sectionsOf(tokens: readonly Token[], headings: readonly DocsHeading[]): DocsSection[] {
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
 * Returns the page as Markdown with absolute links, for programs that read one page or all pages. A link to a file that the service does
 * not serve becomes the path of the file.
 */
export function markdownFor(library: DocsLibrary, page: DocsPage, base: string): string {
  let isCode = false;
  const lines = page.markdown.split("\n").map((line) => {
    if (line.startsWith("```")) isCode = !isCode;
    if (isCode) return line;
    const served = line.replaceAll(
      /(!?)\[([^[\]]*)\]\(([^()\s]+)\)/g,
      (match, mark: string, text: string, link: string) => {
        const target = library.resolve(page, link);
        return mark === "" && target.kind === "missing"
          ? `${text} (${target.path} in the installation's folder)`
          : match;
      },
    );
    return served.replaceAll(/\]\(([^()\s]+)\)/g, (match, link: string) => {
      const href = hrefOf(library.resolve(page, link), base, ".md");
      return href === null ? match : `](${href})`;
    });
  });
  return insertServiceAddress(lines.filter((line) => !/^<!--.*-->$/.test(line)).join("\n"), base);
}
