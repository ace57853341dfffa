/** Sends the text of a package to a thread only once, until the thread's cache is full. The code of actions is never cached. */
import { listDocumentStandIns, NETWORK_ISOLATE_STAND_INS } from "../globals.js";
import { findDocumentGlobalNames } from "../mode.js";
import { DEFAULT_SOURCE_NAME, type PageRunRequest } from "../run.js";
import { wrapInFunction } from "./action-script.js";
import type { SentScript } from "./in-page/messages.js";

const STORED_MAX_CHARACTERS = 4 * 1024 * 1024;

const addSourceUrl = ({ name, source }: { name: string; source: string }): string => `${source}\n//# sourceURL=${name}`;

const NETWORK_ISOLATE_STAND_INS_JSON = JSON.stringify(NETWORK_ISOLATE_STAND_INS);

function createStandInsJson({ packages, source, trialForMode }: PageRunRequest): string | null {
  if (trialForMode === "network-isolate") return NETWORK_ISOLATE_STAND_INS_JSON;
  if (trialForMode !== "document") return null;
  const names = packages.flatMap((script) =>
    "source" in script ? findDocumentGlobalNames(script.source, script.content) : [],
  );
  return JSON.stringify(listDocumentStandIns([...names, ...findDocumentGlobalNames(source)]));
}

export class ThreadTextCache {
  private readonly keys = new Set<string>();
  private characters = 0;

  constructor(private readonly maxCharacters = STORED_MAX_CHARACTERS) {}

  /** Returns the arguments of the thread's method `run`: payload, settings, scripts, and the stand-ins of a trial. */
  createRunArguments(request: PageRunRequest): unknown[] {
    const { payload, settings, packages, sourceName: name = DEFAULT_SOURCE_NAME, source } = request;
    const sentScripts = packages.flatMap((script): SentScript[] => {
      if (!("source" in script)) return [];
      // The cached text contains the name of the script, so the key contains it too.
      const content = script.content ? `${script.name}\n${script.content}` : "";
      if (this.keys.has(content)) return [[script.name, null, content]];
      const text = addSourceUrl(script);
      if (content === "" || this.characters + text.length > this.maxCharacters) return [[script.name, text, ""]];
      this.keys.add(content);
      this.characters += text.length;
      return [[script.name, text, content]];
    });
    sentScripts.push([name, wrapInFunction({ name, source }), ""]);
    return [payload, settings, sentScripts, createStandInsJson(request)];
  }
}
