/** Full-text search in the sections of the documentation, for the search page and for agents. */
import { setImmediate } from "node:timers/promises";
import MiniSearch from "minisearch";
import type { DocsLibrary } from "./library.js";
import { createDocsPath, type DocsRenderer, type DocsSection } from "./markdown.js";

/** Maximum length of a query. The search ignores the rest. */
const QUERY_MAX_CHARACTERS = 200;
/** Maximum number of different words that a query looks up in the index. The search ignores the shorter words of a longer query. */
const QUERY_WORDS_MAX = 6;
/** Minimum length of a word that also finds longer words. One or two letters are the start of hundreds of words. */
const PREFIX_MIN_CHARACTERS = 3;
export const DOCS_SEARCH_RESULTS_MAX = 20;
const EXCERPT_CHARACTERS = 240;
const SECTIONS_INDEXED_PER_STEP = 50;

export interface DocsSearchHit {
  page: string;
  heading: string;
  /** Address of the section, without a proxy's path prefix. */
  address: string;
  excerpt: string;
}

interface IndexedSection extends DocsSection {
  key: number;
  page: string;
  slug: string;
}

const extractPlainText = (text: string): string =>
  text.replaceAll(/\[([^[\]]*)\]\([^()]*\)/g, "$1").replaceAll(/[`*|]/g, "");

/** Returns an excerpt of `body` around the first of the words that it contains. */
function createExcerpt(body: string, words: readonly string[]): string {
  const text = extractPlainText(body).replaceAll(/\s+/g, " ").trim();
  const lowerText = text.toLowerCase();
  const wordPositions = words.map((word) => lowerText.indexOf(word)).filter((position) => position >= 0);
  const start = Math.max(0, Math.min(...wordPositions, text.length) - EXCERPT_CHARACTERS / 3);
  const excerptStart = wordPositions.length === 0 || start === 0 ? 0 : text.indexOf(" ", start) + 1;
  const excerpt = text.slice(excerptStart, excerptStart + EXCERPT_CHARACTERS);
  return `${excerptStart > 0 ? "…" : ""}${excerpt}${excerptStart + EXCERPT_CHARACTERS < text.length ? "…" : ""}`;
}

/** Splits a text at spaces and punctuation, as the index does. */
const splitIntoWords = MiniSearch.getDefault("tokenize") as (text: string) => string[];

/** Returns the words of a query for the index, without duplicates. The longest words are first, because long words are rarer. */
function selectWords(query: string): string[] {
  const words = new Set(splitIntoWords(query.toLowerCase()).filter((word) => word !== ""));
  return [...words].sort((a, b) => b.length - a.length).slice(0, QUERY_WORDS_MAX);
}

interface SearchIndex {
  sections: IndexedSection[];
  index: MiniSearch<IndexedSection>;
}

/** Builds the search index. Yields to other requests after each page and after every SECTIONS_INDEXED_PER_STEP sections. */
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
    searchOptions: { boost: { page: 3, text: 2 }, prefix: ({ length }) => length >= PREFIX_MIN_CHARACTERS },
  });
  await index.addAllAsync(sections, { chunkSize: SECTIONS_INDEXED_PER_STEP });
  return { sections, index };
}

/** Full-text index. Built at the first search, because building takes more processor time (250 ms) than the rest of the API's start. */
export class DocsSearch {
  readonly #buildIndex: () => Promise<SearchIndex>;
  #indexPromise: Promise<SearchIndex> | null = null;

  constructor(library: DocsLibrary, renderer: DocsRenderer) {
    this.#buildIndex = () => buildIndex(library, renderer);
  }

  /**
   * Returns at most `limit` sections, the best match first: those that contain all words of the query or, if there are none, those that
   * contain at least one. A word of PREFIX_MIN_CHARACTERS or more also matches longer words that begin with it.
   */
  async find(query: string, limit: number = DOCS_SEARCH_RESULTS_MAX): Promise<DocsSearchHit[]> {
    const words = selectWords(query.slice(0, QUERY_MAX_CHARACTERS));
    if (words.length === 0) return [];
    this.#indexPromise ??= this.#buildIndex();
    const { sections, index } = await this.#indexPromise;
    const matches = index.search(words.join(" "));
    const fullMatches = matches.filter(({ queryTerms }) => queryTerms.length === words.length);
    const results = fullMatches.length > 0 ? fullMatches : matches;
    return results.slice(0, Math.min(limit, DOCS_SEARCH_RESULTS_MAX)).map(({ id }) => {
      const { page, text: heading, slug, id: anchor, body } = sections[id as number]!;
      return { page, heading, address: `${createDocsPath(slug, "")}#${anchor}`, excerpt: createExcerpt(body, words) };
    });
  }
}
