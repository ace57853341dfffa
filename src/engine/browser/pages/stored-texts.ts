/**
 * Sends the text of a package to a thread only once instead of for each run. The thread caches it
 * (in-page/page-texts.ts), and this class records which texts are in the cache. Actions' own code is never cached.
 */
import { documentStandIns, NETWORK_ISOLATE_STAND_INS } from "../globals.js";
import { findDocumentNames } from "../mode.js";
import { DEFAULT_SOURCE_NAME, type PageRun } from "../run.js";
import { wrapInFunction } from "./action-script.js";
import type { SentScript } from "./in-page/page-texts.js";

/** Maximum number of characters in the cache of a thread. The oldest texts are removed first. */
const STORED_MAX_CHARACTERS = 4 * 1024 * 1024;

/** Adds the name of the script, which stack traces contain, to its text. */
const withSourceUrl = ({ name, source }: { name: string; source: string }): string =>
  `${source}\n//# sourceURL=${name}`;

const NETWORK_ISOLATE_STAND_INS_JSON = JSON.stringify(NETWORK_ISOLATE_STAND_INS);

/**
 * For a trial (a first attempt of a run in an isolate), returns the globals that stand-ins replace, as JSON; otherwise
 * null. If the run's mode would be `document`, these include all globals that the scripts use.
 */
function standInsOf({ packages, source, trialOf }: PageRun): string | null {
  if (trialOf === "network-isolate") return NETWORK_ISOLATE_STAND_INS_JSON;
  if (trialOf !== "document") return null;
  const names = packages.flatMap((script) =>
    "source" in script ? findDocumentNames(script.source, script.content) : [],
  );
  return JSON.stringify(documentStandIns([...names, ...findDocumentNames(source)]));
}

export class StoredTexts {
  /** Lengths of the cached texts, by their key. */
  private readonly lengths = new Map<string, number>();
  private characters = 0;

  constructor(private readonly maxCharacters = STORED_MAX_CHARACTERS) {}

  /**
   * Returns the arguments of the thread's method `run`: payload, settings, keys to remove from the cache, scripts,
   * replaced globals.
   */
  runArguments(request: PageRun): unknown[] {
    const { payload, settings, packages, sourceName: name = DEFAULT_SOURCE_NAME, source } = request;
    const removed: string[] = [];
    const sent = packages.flatMap((script): SentScript[] => {
      if (!("source" in script)) return [];
      // The key contains the name of the script, because the cached text contains it too.
      const content = script.content ? `${script.name}\n${script.content}` : "";
      if (this.lengths.has(content)) return [[script.name, null, content, false]];
      const text = withSourceUrl(script);
      const isStored = content !== "" && text.length <= this.maxCharacters;
      if (isStored) removed.push(...this.add(content, text.length));
      return [[script.name, text, content, isStored]];
    });
    sent.push([name, wrapInFunction({ name, source }), "", false]);
    // Keeps texts that a later script has added again after an earlier one removed them.
    const stillRemoved = removed.filter((content) => !this.lengths.has(content));
    return [payload, settings, stillRemoved, sent, standInsOf(request)];
  }

  /** Records that a text is in the cache. @returns the keys of the texts that must be removed to make room for it */
  private add(content: string, length: number): string[] {
    const removed: string[] = [];
    for (const [other, size] of this.lengths) {
      if (this.characters + length <= this.maxCharacters) break;
      this.lengths.delete(other);
      this.characters -= size;
      removed.push(other);
    }
    this.lengths.set(content, length);
    this.characters += length;
    return removed;
  }
}
