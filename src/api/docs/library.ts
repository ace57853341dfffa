/** Reads the Markdown files of the documentation once, and gives each page its address under /docs. */
import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

/** Folder of the installed service, above dist/src/api/docs. */
const PACKAGE_ROOT = fileURLToPath(new URL("../../../..", import.meta.url));

/** Documents outside docs/, each with its page's address below /docs/. */
const ROOT_PAGES: Record<string, string> = {
  "README.md": "introduction",
  "SECURITY.md": "security",
  "BENCHMARKS.md": "benchmarks",
  "CHANGELOG.md": "changelog",
  "CONTRIBUTING.md": "contributing",
};

const INDEX_FILE = "docs/README.md";
const SUMMARY_MAX_CHARACTERS = 200;

export interface DocsPage {
  /** Address of the page below /docs/; "" for the index. */
  slug: string;
  /** Path of the Markdown file, relative to the folder of the installation. */
  file: string;
  title: string;
  /** First sentence of the page, without markup. */
  summary: string;
  markdown: string;
}

export type DocsLinkTarget =
  | { kind: "page"; slug: string; hash: string }
  | { kind: "picture"; path: string }
  | { kind: "address"; href: string }
  | { kind: "missing"; path: string };

const getSlug = (file: string): string =>
  file === INDEX_FILE ? "" : (ROOT_PAGES[file] ?? file.slice("docs/".length, -".md".length));

const removeMarkup = (text: string): string =>
  text
    .replaceAll(/!\[[^[\]]*\]\([^()]*\)/g, "")
    .replaceAll(/\[([^[\]]*)\]\([^()]*\)/g, "$1")
    .replaceAll(/[`*]/g, "")
    .replaceAll(/\s+/g, " ")
    .trim();

function extractSummary(markdown: string): string {
  const blocks = markdown.replaceAll(/^<!--.*-->$/gm, "").split(/\n{2,}/);
  const paragraph = blocks.map((block) => block.trim()).find((block) => /^[\w"'`*[]/.test(block)) ?? "";
  const text = removeMarkup(paragraph);
  const sentenceEnd = text.search(/[.:](?:\s|$)/);
  return (sentenceEnd < 0 ? text : text.slice(0, sentenceEnd)).slice(0, SUMMARY_MAX_CHARACTERS);
}

function readPage(root: string, file: string): DocsPage {
  const markdown = readFileSync(join(root, file), "utf8");
  const title = removeMarkup(/^# (.+)$/m.exec(markdown)?.[1] ?? basename(file, ".md"));
  return { slug: getSlug(file), file, title, summary: extractSummary(markdown), markdown };
}

export class DocsLibrary {
  readonly root: string;
  readonly #pagesBySlug: ReadonlyMap<string, DocsPage>;
  /** Pages by the last segment of their address, so that `/docs/triggers` also finds `/docs/guides/triggers`. */
  readonly #pagesByName: ReadonlyMap<string, DocsPage>;
  readonly #pagesByFile: ReadonlyMap<string, DocsPage>;

  constructor(root: string = PACKAGE_ROOT) {
    this.root = root;
    // Searches the folder instead of opening each file, so that a missing file is left out and causes no error.
    const files = [...Object.keys(ROOT_PAGES), "docs/**/*.md"].flatMap((pattern) => globSync(pattern, { cwd: root }));
    const pages = files.map((file) => readPage(root, file.replaceAll("\\", "/")));
    this.#pagesBySlug = new Map(pages.map((page) => [page.slug, page]));
    this.#pagesByName = new Map(pages.map((page) => [basename(page.slug), page]));
    this.#pagesByFile = new Map(pages.map((page) => [page.file, page]));
  }

  get pages(): readonly DocsPage[] {
    return [...this.#pagesBySlug.values()];
  }

  /**
   * Returns the page with this slug; undefined if there is none.
   * @param slug in upper or lower case. The last segment also finds the page, because addresses had no sections (such
   * as `guides/`) in earlier releases
   */
  findPageBySlug(slug: string): DocsPage | undefined {
    const name = slug.toLowerCase();
    return this.#pagesBySlug.get(slug) ?? this.#pagesBySlug.get(name) ?? this.#pagesByName.get(name);
  }

  findPageByFile(file: string): DocsPage | undefined {
    return this.#pagesByFile.get(file);
  }

  /** Returns the target of a link on `page`. A relative link starts at the page's Markdown file. */
  resolveLink(page: DocsPage, link: string): DocsLinkTarget {
    if (/^[a-z][a-z+.-]*:/i.test(link)) return { kind: "address", href: link };
    const [path = "", anchor] = link.split("#");
    const hash = anchor === undefined ? "" : `#${anchor}`;
    if (path === "") return { kind: "page", slug: page.slug, hash };
    const file = normalize(join(dirname(page.file), path)).replaceAll("\\", "/");
    const target = this.#pagesByFile.get(file);
    if (target) return { kind: "page", slug: target.slug, hash };
    if (file === "LICENSE") return { kind: "address", href: "/LICENSE" };
    const picturePath = /^docs\/(pictures\/[\w./-]+\.(?:png|svg))$/.exec(file)?.[1];
    return picturePath === undefined ? { kind: "missing", path: file } : { kind: "picture", path: picturePath };
  }
}
