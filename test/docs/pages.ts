/** Reads the code blocks of the docs, and the marks that state what a test does with each block. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

export const PAGES: readonly string[] = [
  ...["README.md", "BENCHMARKS.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"],
  ...globSync("docs/**/*.md", { cwd: ROOT }).sort(),
];

export const readPage = (page: string): string => readFileSync(join(ROOT, page), "utf8");

/**
 * A code block of a page. A mark in the line before the block states how a test uses the block. Marks: `<!-- not run: why -->`,
 * `<!-- file: name -->`, `<!-- response -->` and `<!-- output -->`.
 */
export interface Block {
  line: number;
  language: string;
  text: string;
  /** Anchor of the block's section; "" before the first section. */
  section: string;
  /** Reason that no test runs the block. */
  notRun: string | null;
  /** Name of the file that a reader creates from the block. */
  file: string | null;
  /** True if the block is the JSON that the last command before it prints, marked by `<!-- response -->`. */
  isResponse: boolean;
  /** True if the block is text that the commands before it print, marked by `<!-- output -->`. */
  isOutput: boolean;
}

export const isAction = ({ language, text, file, notRun }: Block): boolean =>
  language === "js" && file === null && notRun === null && /^async function execute\(/m.test(text);

/** Returns the anchor of a heading, as GitHub does. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(" ", "-");

export function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let section = "";
  let open: Block | null = null;
  let mark = "";
  for (const [at, line] of text.split("\n").entries()) {
    if (open && line === "```") {
      blocks.push(open);
      open = null;
    } else if (open) {
      open.text += `${line}\n`;
    } else if (line.startsWith("```")) {
      const of = (word: string) => new RegExp(`^<!-- ${word}: (.+) -->$`).exec(mark)?.[1] ?? null;
      const language = line.slice(3).trim();
      open = {
        line: at + 1,
        language,
        text: "",
        section,
        notRun: of("not run"),
        file: of("file"),
        isResponse: mark === "<!-- response -->",
        isOutput: mark === "<!-- output -->",
      };
    } else if (/^##? /.test(line)) {
      section = line.startsWith("## ") ? anchorOf(line.slice(3)) : section;
    }
    mark = line;
  }
  if (open) throw new Error(`the block of line ${open.line} has no end`);
  return blocks;
}

export interface Beginning {
  page: string;
  /** Anchor of the section; "" for the part before the first section. */
  section: string;
  /** True if only the first block of the section is needed. */
  isFirstBlock: boolean;
}

/**
 * Returns the section whose steps a reader of this page has done before, from a mark such as `<!-- begins with: page.md#section -->`.
 * Without `#section`, the mark means the part before the first section. With `, first block`, only its first block.
 */
export function beginningOf(text: string): Beginning | null {
  const mark = /^<!-- begins with: ([\w./-]+\.md)(?:#([\w-]+))?(, first block)? -->$/m;
  const [, page = "", section = "", first] = mark.exec(text) ?? [];
  return page === "" ? null : { page, section, isFirstBlock: first !== undefined };
}

/**
 * Returns the blocks of a page in a language, in order.
 * @throws Error unless the page has exactly `count` of them, so that a test notices a new block
 */
export function blocksIn(page: string, language: string, count: number): string[] {
  const blocks = blocksOf(readPage(page)).filter((block) => block.language === language);
  if (blocks.length !== count)
    throw new Error(`${page} has ${blocks.length} blocks of ${language} (expected ${count})`);
  return blocks.map(({ text }) => text);
}

/** Returns the text of a JavaScript example, with this service's URL, app ID and token in place of the example's. */
export const filledIn = (text: string, of: { url: string; appId: number; token: string }): string =>
  text
    .replaceAll("http://127.0.0.1:4000", of.url)
    .replaceAll(/\b(app|appId): 1\b/g, `$1: ${of.appId}`)
    .replaceAll("the token of an editor", of.token);
