/**
 * Which scripts' texts a page keeps beside its workers, and a thread of realms by itself, so that they are sent there once and not for each
 * run: those alone whose content has a name, so that no run can tell whether it was the first. They do as they are told here; nothing of an
 * author's runs where they are.
 */
import { documentStandIns, NETWORK_ISOLATE_STAND_INS } from "../globals.js";
import { documentNamesIn } from "../mode.js";
import { DEFAULT_SOURCE_NAME, type PageRun } from "../run.js";
import { functionOf } from "./action-script.js";

/** Of one of them, in characters; the oldest go. */
const KEPT_MAX_CHARACTERS = 4 * 1024 * 1024;

/** One script as it is sent there: `text` null where that content is there; `keep` where it is to have it from here on. */
export type SentScript = readonly [name: string, text: string | null, content: string, keep: boolean];

/** As it is evaluated: its frames bear its name. */
const named = ({ name, source }: { name: string; source: string }): string => `${source}\n//# sourceURL=${name}`;

const NETWORK_ISOLATE_STAND_INS_JSON = JSON.stringify(NETWORK_ISOLATE_STAND_INS);

/** Stand-ins for a trial, as JSON: in a trial of a document also for the globals that any of the scripts names. null if the run is no trial. */
function standInsOf({ packages, source, trialOf }: PageRun): string | null {
  if (trialOf === "network-isolate") return NETWORK_ISOLATE_STAND_INS_JSON;
  if (trialOf !== "document") return null;
  const names = packages.flatMap((script) =>
    "source" in script ? documentNamesIn(script.source, script.content) : [],
  );
  return JSON.stringify(documentStandIns([...names, ...documentNamesIn(source)]));
}

export function createKeptTexts(maxCharacters = KEPT_MAX_CHARACTERS) {
  const lengths = new Map<string, number>();
  let characters = 0;

  /** Makes room for a text. @returns the contents that go */
  function admit(content: string, length: number): string[] {
    const gone: string[] = [];
    for (const [other, size] of lengths) {
      if (characters + length <= maxCharacters) break;
      lengths.delete(other);
      characters -= size;
      gone.push(other);
    }
    lengths.set(content, length);
    characters += length;
    return gone;
  }

  return {
    /** A run as it is sent there: payload, settings, the contents to forget when it has begun, the scripts, whose trial it is, and what it stands in for. */
    valuesOf(request: PageRun): unknown[] {
      const { payload, settings, packages, sourceName: name = DEFAULT_SOURCE_NAME, source } = request;
      const gone: string[] = [];
      const sent = packages.flatMap((script): SentScript[] => {
        if (!("source" in script)) return [];
        // Of the same content, each name has a text of its own.
        const content = script.content ? `${script.name}\n${script.content}` : "";
        if (lengths.has(content)) return [[script.name, null, content, false]];
        const text = named(script);
        const keep = content !== "" && text.length <= maxCharacters;
        if (keep) gone.push(...admit(content, text.length));
        return [[script.name, text, content, keep]];
      });
      sent.push([name, functionOf({ name, source }), "", false]);
      // One that went for another may have come again.
      return [payload, settings, gone.filter((content) => !lengths.has(content)), sent, standInsOf(request)];
    },
  };
}
