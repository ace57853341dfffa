/**
 * Sends the text of a package to a thread once instead of for each run. The thread caches the text
 * (in-page/page-texts.ts), and this class records which texts are in the thread's cache. The code of actions is never
 * cached.
 */
import { listDocumentStandIns, NETWORK_ISOLATE_STAND_INS } from "../globals.js";
import { findDocumentGlobalNames } from "../mode.js";
import { DEFAULT_SOURCE_NAME, type PageRunRequest } from "../run.js";
import { wrapInFunction } from "./action-script.js";
import type { SentScript } from "./in-page/page-texts.js";

/** Maximum total number of characters in the cache of a thread. Above it, the oldest texts are removed first. */
const STORED_MAX_CHARACTERS = 4 * 1024 * 1024;

/** Appends a comment with the script's name to its text, so that stack traces contain this name. */
const addSourceUrl = ({ name, source }: { name: string; source: string }): string => `${source}\n//# sourceURL=${name}`;

const NETWORK_ISOLATE_STAND_INS_JSON = JSON.stringify(NETWORK_ISOLATE_STAND_INS);

/**
 * For a trial (a first attempt of a run in an isolate), returns the globals that stand-ins replace, as JSON; otherwise
 * null. If the run's mode would be `document`, the replaced globals include all globals that the scripts use.
 */
function createStandInsJson({ packages, source, trialForMode }: PageRunRequest): string | null {
  if (trialForMode === "network-isolate") return NETWORK_ISOLATE_STAND_INS_JSON;
  if (trialForMode !== "document") return null;
  const names = packages.flatMap((script) =>
    "source" in script ? findDocumentGlobalNames(script.source, script.content) : [],
  );
  return JSON.stringify(listDocumentStandIns([...names, ...findDocumentGlobalNames(source)]));
}

export class ThreadTextCache {
  /** Number of characters of each cached text. The key is that of the text in the cache. */
  private readonly lengthByKey = new Map<string, number>();
  private characters = 0;

  constructor(private readonly maxCharacters = STORED_MAX_CHARACTERS) {}

  /**
   * Returns the arguments of the thread's method `run`: payload, settings, keys to remove from the cache, scripts,
   * replaced globals.
   */
  createRunArguments(request: PageRunRequest): unknown[] {
    const { payload, settings, packages, sourceName: name = DEFAULT_SOURCE_NAME, source } = request;
    const removed: string[] = [];
    const sent = packages.flatMap((script): SentScript[] => {
      if (!("source" in script)) return [];
      // The key contains the name of the script, because the cached text contains it too.
      const content = script.content ? `${script.name}\n${script.content}` : "";
      if (this.lengthByKey.has(content)) return [[script.name, null, content, false]];
      const text = addSourceUrl(script);
      const isStored = content !== "" && text.length <= this.maxCharacters;
      if (isStored) removed.push(...this.add(content, text.length));
      return [[script.name, text, content, isStored]];
    });
    sent.push([name, wrapInFunction({ name, source }), "", false]);
    // A script may have added a text to the cache again after an earlier script removed it. This text stays in the
    // cache.
    const stillRemoved = removed.filter((content) => !this.lengthByKey.has(content));
    return [payload, settings, stillRemoved, sent, createStandInsJson(request)];
  }

  /**
   * Records that a text is in the cache.
   * @returns the keys of the texts that the thread must remove to make room for the new text
   */
  private add(content: string, length: number): string[] {
    const removed: string[] = [];
    for (const [other, size] of this.lengthByKey) {
      if (this.characters + length <= this.maxCharacters) break;
      this.lengthByKey.delete(other);
      this.characters -= size;
      removed.push(other);
    }
    this.lengthByKey.set(content, length);
    this.characters += length;
    return removed;
  }
}
