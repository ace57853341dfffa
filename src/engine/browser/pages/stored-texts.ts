/**
 * Sends the text of a package to a thread once instead of for each run. The thread stores it by content
 * (in-page/page-texts.ts), and this class knows which texts are stored there. Only scripts that are the same for all
 * runs are stored, so that a run cannot detect whether it was the first.
 */
import { documentStandIns, NETWORK_ISOLATE_STAND_INS } from "../globals.js";
import { documentNamesIn } from "../mode.js";
import { DEFAULT_SOURCE_NAME, type PageRun } from "../run.js";
import { functionOf } from "./action-script.js";
import type { SentScript } from "./in-page/page-texts.js";

/** Maximum characters that a thread stores; the oldest texts are removed first. */
const STORED_MAX_CHARACTERS = 4 * 1024 * 1024;

/** Returns the script's text with the name that stacks show. */
const withSourceUrl = ({ name, source }: { name: string; source: string }): string =>
  `${source}\n//# sourceURL=${name}`;

const NETWORK_ISOLATE_STAND_INS_JSON = JSON.stringify(NETWORK_ISOLATE_STAND_INS);

/**
 * Returns the replaced globals of a trial as JSON; null if the run is not a trial. In a trial of a document they
 * include all globals that the scripts name.
 */
function standInsOf({ packages, source, trialOf }: PageRun): string | null {
  if (trialOf === "network-isolate") return NETWORK_ISOLATE_STAND_INS_JSON;
  if (trialOf !== "document") return null;
  const names = packages.flatMap((script) =>
    "source" in script ? documentNamesIn(script.source, script.content) : [],
  );
  return JSON.stringify(documentStandIns([...names, ...documentNamesIn(source)]));
}

export class StoredTexts {
  /** Lengths of the stored texts, by content. */
  private readonly lengths = new Map<string, number>();
  private characters = 0;

  constructor(private readonly maxCharacters = STORED_MAX_CHARACTERS) {}

  /** Returns arguments of the thread's `run`: payload, settings, the contents to remove, the scripts, and the stand-ins. */
  runArguments(request: PageRun): unknown[] {
    const { payload, settings, packages, sourceName: name = DEFAULT_SOURCE_NAME, source } = request;
    const removed: string[] = [];
    const sent = packages.flatMap((script): SentScript[] => {
      if (!("source" in script)) return [];
      // The stored text includes the name.
      const content = script.content ? `${script.name}\n${script.content}` : "";
      if (this.lengths.has(content)) return [[script.name, null, content, false]];
      const text = withSourceUrl(script);
      const isStored = content !== "" && text.length <= this.maxCharacters;
      if (isStored) removed.push(...this.add(content, text.length));
      return [[script.name, text, content, isStored]];
    });
    sent.push([name, functionOf({ name, source }), "", false]);
    // A removed text may have been stored again by a later script.
    const stillRemoved = removed.filter((content) => !this.lengths.has(content));
    return [payload, settings, stillRemoved, sent, standInsOf(request)];
  }

  /** Adds a text. @returns the contents of removed texts */
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
