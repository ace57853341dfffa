/** Full-text search over the sections of the documentation, for the search page and for agents. */
import { setImmediate } from "node:timers/promises";
import MiniSearch from "minisearch";
import type { DocsLibrary } from "./library.js";
import { addressOf, type DocsRenderer, type DocsSection } from "./markdown.js";

/** Maximum length of a query. Longer ones are cut, because each word costs a walk through the index. */
const QUERY_MAX_CHARACTERS = 200;
const WORDS_MAX = 12;
export const RESULTS_MAX = 20;
const EXCERPT_CHARACTERS = 240;
const CHUNK_SECTIONS = 50;

export interface DocsHit {
  page: string;
  heading: string;
  /** Address of the section, without the prefix before /docs. */
  address: string;
  excerpt: string;
}

interface IndexedSection extends DocsSection {
  key: number;
  page: string;
  slug: string;
}

const plainText = (text: string): string => text.replaceAll(/\[([^[\]]*)\]\([^()]*\)/g, "$1").replaceAll(/[`*|]/g, "");

/** Returns the text around the first word of the query. */
function excerptOf(body: string, words: readonly string[]): string {
  const text = plainText(body).replaceAll(/\s+/g, " ").trim();
  const lowerText = text.toLowerCase();
  const wordPositions = words.map((word) => lowerText.indexOf(word)).filter((at) => at >= 0);
  const start = Math.max(0, Math.min(...wordPositions, text.length) - EXCERPT_CHARACTERS / 3);
  const excerptStart = wordPositions.length === 0 || start === 0 ? 0 : text.indexOf(" ", start) + 1;
  const excerpt = text.slice(excerptStart, excerptStart + EXCERPT_CHARACTERS);
  return `${excerptStart > 0 ? "…" : ""}${excerpt}${excerptStart + EXCERPT_CHARACTERS < text.length ? "…" : ""}`;
}

interface SearchIndex {
  sections: IndexedSection[];
  index: MiniSearch<IndexedSection>;
}

/** Builds the index. Yields to other work after each page and after every few sections. */
async function buildIndex(library: DocsLibrary, renderer: DocsRenderer): Promise<SearchIndex> {
  const sections: IndexedSection[] = [];
  for (const page of library.pages) {
    for (const section of renderer.render(page).sections)
      sections.push({ ...section, page: page.title, slug: page.slug, key: sections.length });
    await setImmediate();
  }
  const index = new MiniSearch<IndexedSection>({
    idField: "key",
    fields: ["page", "text", "body"],
    searchOptions: { boost: { page: 3, text: 2 }, prefix: true, combineWith: "AND" },
  });
  await index.addAllAsync(sections, { chunkSize: CHUNK_SECTIONS });
  return { sections, index };
}

/** Full-text index. The first search builds it, because that takes more processor time (250 ms) than the rest of the API's start. */
export class DocsSearch {
  readonly #build: () => Promise<SearchIndex>;
  #built: Promise<SearchIndex> | null = null;

  constructor(library: DocsLibrary, renderer: DocsRenderer) {
    this.#build = () => buildIndex(library, renderer);
  }

  /** Returns the best matches first, at most `limit`. Falls back to sections with any of the words if none has all. */
  async find(query: string, limit: number = RESULTS_MAX): Promise<DocsHit[]> {
    const words = query.slice(0, QUERY_MAX_CHARACTERS).toLowerCase().split(/\s+/).filter(Boolean).slice(0, WORDS_MAX);
    if (words.length === 0) return [];
    const text = words.join(" ");
    this.#built ??= this.#build();
    const { sections, index } = await this.#built;
    const all = index.search(text);
    const results = all.length > 0 ? all : index.search(text, { combineWith: "OR" });
    return results.slice(0, Math.min(limit, RESULTS_MAX)).map(({ id }) => {
      const { page, text: heading, slug, id: anchor, body } = sections[id as number]!;
      return { page, heading, address: `${addressOf(slug, "")}#${anchor}`, excerpt: excerptOf(body, words) };
    });
  }
}
