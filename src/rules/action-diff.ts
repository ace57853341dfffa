/** Computes the difference between two versions of an action: field by field, and the code as a unified diff. */
import { FILE_HEADERS_ONLY, formatPatch, type StructuredPatchHunk, structuredPatch } from "diff";
import type { ActionInput } from "./action-input.js";

export interface ComparedScript {
  name: string;
  version?: string;
  integrity: string;
}

/** One of the two versions that are compared. If `assets` (package scripts) is absent, the diff does not compare scripts. */
export type ComparedAction = ActionInput & { assets?: readonly ComparedScript[] | undefined };

export interface ActionFieldChange {
  field: Exclude<keyof ComparedAction, "code">;
  before: unknown;
  after: unknown;
}

/** Script of a package that differs between two versions. `before` or `after` is null if that version does not use the package. */
export interface ScriptChange {
  name: string;
  before: ComparedScript | null;
  after: ComparedScript | null;
}

export interface ActionDiff {
  /** Fields of the action that differ, in the order of the API specification, except the code (see `code`). */
  changes: ActionFieldChange[];
  code: string | null;
}

const COMPARED_FIELDS = [
  "name",
  "description",
  "active",
  "environment",
  "triggers",
  "dependencies",
  "frequency",
  "timezone",
  "access",
  "concurrency",
  "debounce",
  "timeoutMs",
  "jitterSeconds",
  "integrationOrigins",
  "source",
  "assets",
] as const satisfies readonly ActionFieldChange["field"][];

const CONTEXT_LINES = 3;

/** Maximum number of differing lines. Above it, the diff replaces the whole text: the shortest diff takes time that grows quadratically. */
const MAX_DISTANCE_LINES = 500;

const NO_NEWLINE = "\\ No newline at end of file";

function prefixLines(sign: "-" | "+", text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  const endsWithNewline = lines.at(-1) === "";
  if (endsWithNewline) lines.pop();
  return [...lines.map((line) => sign + line), ...(endsWithNewline ? [] : [NO_NEWLINE])];
}

function createWholeTextHunk(before: string, after: string): StructuredPatchHunk {
  const countLines = (lines: string[]) => lines.filter((line) => line !== NO_NEWLINE).length;
  const [removedLines, addedLines] = [prefixLines("-", before), prefixLines("+", after)];
  return {
    oldStart: 1,
    oldLines: countLines(removedLines),
    newStart: 1,
    newLines: countLines(addedLines),
    lines: [...removedLines, ...addedLines],
  };
}

/** Returns a unified diff, which the program `patch` can read; null if the texts are the same. */
export function createUnifiedDiff(
  before: string,
  after: string,
  labels: { before: string; after: string },
): string | null {
  if (before === after) return null;
  const options = { context: CONTEXT_LINES, maxEditLength: MAX_DISTANCE_LINES };
  const patch = structuredPatch(labels.before, labels.after, before, after, undefined, undefined, options) ?? {
    oldFileName: labels.before,
    newFileName: labels.after,
    oldHeader: undefined,
    newHeader: undefined,
    hunks: [createWholeTextHunk(before, after)],
  };
  return formatPatch(patch, FILE_HEADERS_ONLY);
}

/** Two versions of one action. `labels` are the file names in the diff of the code. */
export interface ActionVersionPair {
  before: ComparedAction;
  after: ComparedAction;
  labels: { before: string; after: string };
}

/** Returns the differences from `before` to `after`. The parameter is one object, because a worker thread passes only one argument. */
export function diffActions({ before, after, labels }: ActionVersionPair): ActionDiff {
  const changedFields = COMPARED_FIELDS.filter(
    (field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]),
  );
  return {
    changes: changedFields.map((field) => ({ field, before: before[field] ?? null, after: after[field] ?? null })),
    code: createUnifiedDiff(before.code, after.code, labels),
  };
}

/** Returns the package scripts that differ between the two versions, sorted by name. Ignores a different order of scripts. */
export function listChangedScripts(changes: readonly ActionFieldChange[]): ScriptChange[] {
  const change = changes.find(({ field }) => field === "assets");
  const [before, after] = [change?.before, change?.after].map(
    (scripts) => new Map(((scripts ?? []) as ComparedScript[]).map((script) => [script.name, script])),
  ) as [Map<string, ComparedScript>, Map<string, ComparedScript>];
  return [...new Set([...before.keys(), ...after.keys()])]
    .map((name) => ({ name, before: before.get(name) ?? null, after: after.get(name) ?? null }))
    .filter((script) => script.before?.integrity !== script.after?.integrity)
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
