/** Compares two states of one action. Each state is a saved version, the draft or the live version. */

import type { ActionRow } from "../../data/action.js";
import type { Db } from "../../data/database.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { createThreadPool } from "../../engine/threads.js";
import { ActionError } from "../../errors.js";
import { CODE_RULES_CHECK_MEMORY_MB, CODE_RULES_CHECK_TIMEOUT_MS } from "../../limits.js";
import type * as actionDiff from "../../rules/action-diff.js";
import { type ActionDiff, type ActionVersionPair, type ComparedScript, diffActions } from "../../rules/action-diff.js";
import { type ActionInput, omitActionSourceIfNull } from "../../rules/action-input.js";
import { omitActionSourceMap } from "../../rules/action-source.js";
import { refuseField } from "../../rules/fields.js";
import { isStoredScript } from "../../rules/packages.js";
import { findLiveVersion, pickAuthoredFields, requireAction } from "./action-rows.js";
import { requireActionVersion } from "./versions.js";

/** A compared state: the ID of a saved version, "master" for the draft, or "production" for the live version. */
export type ComparedVersionSelector = number | "master" | "production";

export interface ActionComparison extends ActionDiff {
  from: ComparedVersionSelector;
  to: ComparedVersionSelector;
  /** All fields of the state `from`. */
  before: ActionInput;
  /** All fields of the state `to`. */
  after: ActionInput;
}

interface ActionState {
  selector: ComparedVersionSelector;
  input: ActionInput;
  /** Scripts of the action's packages; missing if the comparison ignores scripts. */
  assets?: ComparedScript[];
}

const toComparedScripts = ({ assets }: ActionRow): ComparedScript[] =>
  (assets ?? [])
    .filter(isStoredScript)
    .map(({ name, version, integrity }) => ({ name, ...(version && { version }), integrity: integrity! }));

/**
 * Returns the draft's fields after a restore of the version. A version without `access` (of an older release) gets the draft's `access`.
 */
const readFieldsAfterRestore = (version: ActionInput, { access }: ActionInput): ActionInput => ({
  ...version,
  access: version.access ?? access,
});

const formatVersionLabel = (selector: ComparedVersionSelector): string =>
  typeof selector === "number" ? `version ${selector}` : selector;

/** If two versions together have more code than this, another thread compares them, so that the main thread can handle other requests. */
const MAIN_THREAD_MAX_CHARACTERS = 8_192;
/** Maximum number of concurrent comparisons in other threads of this process. Each app has at most one. */
const MAX_CONCURRENT_COMPARISONS = 4;
const comparisonQueue = new FairSemaphore(MAX_CONCURRENT_COMPARISONS, 1);
const comparisonThreadPool = createThreadPool<ActionVersionPair, ActionDiff>({
  module: new URL("../../rules/action-diff.js", import.meta.url),
  name: "diffActions" satisfies keyof typeof actionDiff,
  memoryMb: CODE_RULES_CHECK_MEMORY_MB,
  timeoutMs: CODE_RULES_CHECK_TIMEOUT_MS,
});

async function diffInThread(appId: number, actions: ActionVersionPair): Promise<ActionDiff> {
  if (actions.before.code.length + actions.after.code.length <= MAIN_THREAD_MAX_CHARACTERS) return diffActions(actions);
  const releaseComparisonSlot = await comparisonQueue.enter(appId);
  const threadResult = await comparisonThreadPool.call(actions).finally(releaseComparisonSlot);
  if (threadResult.ok) return threadResult.value;
  throw new ActionError(
    "REQUEST_INVALID",
    `the comparison of the two versions of the action exceeded the ${threadResult.limit} limit; compare shorter versions`,
  );
}

const omitNullSource = ({ source, ...input }: ActionInput): ActionInput => ({
  ...input,
  ...omitActionSourceIfNull(source ? omitActionSourceMap(source) : null),
});

async function compareStates(appId: number, from: ActionState, to: ActionState): Promise<ActionComparison> {
  const labels = { before: formatVersionLabel(from.selector), after: formatVersionLabel(to.selector) };
  const [before, after] = [omitNullSource(from.input), omitNullSource(to.input)];
  // If `assets` is undefined, the comparison ignores the scripts of packages.
  const comparedVersions = {
    before: { ...before, assets: from.assets },
    after: { ...after, assets: to.assets },
    labels,
  };
  return { from: from.selector, to: to.selector, before, after, ...(await diffInThread(appId, comparedVersions)) };
}

function parseComparedVersion(against: string): ComparedVersionSelector {
  if (against === "master" || against === "production") return against;
  if (/^[1-9]\d{0,15}$/.test(against)) return Number(against);
  return refuseField(
    "against",
    '"master" (the draft), "production" (the live version) or the ID of a version',
    against,
  );
}

export class ActionComparer {
  constructor(private readonly options: { db: Db }) {}

  private async requireLiveVersion(masterId: number): Promise<ActionRow> {
    const liveVersion = await findLiveVersion(this.options.db.manager, masterId);
    if (!liveVersion) throw new ActionError("ACTION_NOT_PUBLISHED");
    return liveVersion;
  }

  private async readState(
    masterId: number,
    master: ActionInput,
    selector: ComparedVersionSelector,
  ): Promise<ActionState> {
    if (selector === "master") return { selector, input: master };
    if (selector !== "production")
      return {
        selector,
        input: readFieldsAfterRestore((await requireActionVersion(this.options.db, masterId, selector)).data, master),
      };
    return { selector, input: pickAuthoredFields(await this.requireLiveVersion(masterId)) };
  }

  /**
   * Compares a saved version with the draft, the live version or another saved version.
   * @param against `master` for the draft, `production` for the live version, or the ID of a saved version
   * @throws ACTION_NOT_FOUND, ACTION_NOT_V3, VERSION_NOT_FOUND, ACTION_NOT_PUBLISHED, REQUEST_INVALID
   */
  async compareVersion(appId: number, actionId: number, versionId: number, against: string): Promise<ActionComparison> {
    const selector = parseComparedVersion(against);
    const master = pickAuthoredFields(await requireAction(this.options.db.manager, appId, actionId));
    const from = await this.readState(actionId, master, versionId);
    return compareStates(appId, from, await this.readState(actionId, master, selector));
  }

  /**
   * Compares the live version with the draft. The result contains the changes that publishing the draft would make.
   * @param actionId ID of the draft or of the live version
   * @throws ACTION_NOT_FOUND, ACTION_NOT_V3, ACTION_NOT_PUBLISHED
   */
  async compareLive(appId: number, actionId: number): Promise<ActionComparison> {
    const { db } = this.options;
    const foundAction = await requireAction(db.manager, appId, actionId);
    const master =
      foundAction.masterId === null ? foundAction : await requireAction(db.manager, appId, foundAction.masterId);
    const production = await this.requireLiveVersion(master.id);
    const createActionState = (selector: ComparedVersionSelector, row: ActionRow): ActionState => ({
      selector,
      input: pickAuthoredFields(row),
      assets: toComparedScripts(row),
    });
    return compareStates(appId, createActionState("production", production), createActionState("master", master));
  }
}
