/** Compares two states of one action. A state is a version, the draft or the live version. */
import type { DataSource } from "typeorm";
import type { ActionRow } from "../../data/action.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { createThreads } from "../../engine/threads.js";
import { ActionError } from "../../errors.js";
import { CODE_READ_MEMORY_MB, CODE_READ_TIMEOUT_MS } from "../../limits.js";
import { type ActionDiff, type ComparedScript, type DiffedActions, diffActions } from "../../rules/action-diff.js";
import { type ActionInput, presentSource } from "../../rules/action-input.js";
import { shownSource } from "../../rules/action-source.js";
import { isStoredScript } from "../../rules/packages.js";
import { findAction, inputOf, productionOf } from "./action-rows.js";
import { findVersion } from "./versions.js";

/** One side of a comparison: the ID of a version, "master" for the draft, or "production" for the live version. */
export type ComparedSide = number | "master" | "production";

export interface Comparison extends ActionDiff {
  from: ComparedSide;
  to: ComparedSide;
  /** The complete state of the side `from`. */
  before: ActionInput;
  /** The complete state of the side `to`. */
  after: ActionInput;
}

interface State {
  side: ComparedSide;
  input: ActionInput;
  /** Scripts of packages; absent if they are not compared. */
  assets?: ComparedScript[];
}

const scriptsOf = ({ assets }: ActionRow): ComparedScript[] =>
  (assets ?? [])
    .filter(isStoredScript)
    .map(({ name, version, integrity }) => ({ name, ...(version && { version }), integrity: integrity! }));

/**
 * Returns the state that restoring the version would create. A version from before the field `access` existed gets the
 * draft's `access`, as a restore does.
 */
const asRestored = (version: ActionInput, { access }: ActionInput): ActionInput => ({
  ...version,
  access: version.access ?? access,
});

const labelOf = (side: ComparedSide): string => (typeof side === "number" ? `version ${side}` : side);

/**
 * Code up to this length in total is compared on the main thread. Comparing half a million lines there would block the
 * thread for 1.5 s.
 */
const INLINE_MAX_CHARACTERS = 8_192;
/** Maximum number of concurrent comparisons of long code. Each app has at most one. */
const COMPARISONS_AT_ONCE = 4;
const comparisonQueue = new FairSemaphore(COMPARISONS_AT_ONCE, 1);
const comparisonThreads = createThreads<DiffedActions, ActionDiff>({
  module: new URL("../../rules/action-diff.js", import.meta.url),
  name: "diffActions",
  memoryMb: CODE_READ_MEMORY_MB,
  timeoutMs: CODE_READ_TIMEOUT_MS,
});

async function diffInThread(appId: number, actions: DiffedActions): Promise<ActionDiff> {
  if (actions.before.code.length + actions.after.code.length <= INLINE_MAX_CHARACTERS) return diffActions(actions);
  const leaveQueue = await comparisonQueue.enter(appId);
  const threadResult = await comparisonThreads.call(actions).finally(leaveQueue);
  if (threadResult.ok) return threadResult.value;
  throw new ActionError(
    "REQUEST_INVALID",
    `comparing the two states exceeded the ${threadResult.limit} limit; compare shorter versions`,
  );
}

const shownInput = ({ source, ...input }: ActionInput): ActionInput => ({
  ...input,
  ...presentSource(source ? shownSource(source) : null),
});

async function compareStates(appId: number, from: State, to: State): Promise<Comparison> {
  const labels = { before: labelOf(from.side), after: labelOf(to.side) };
  const [before, after] = [shownInput(from.input), shownInput(to.input)];
  // The stored data of a version also contains its scripts, so `assets` is set on both sides, or removed.
  const compared = { before: { ...before, assets: from.assets }, after: { ...after, assets: to.assets }, labels };
  return { from: from.side, to: to.side, before, after, ...(await diffInThread(appId, compared)) };
}

function parseSide(against: string): ComparedSide {
  if (against === "master" || against === "production") return against;
  if (/^[1-9]\d{0,15}$/.test(against)) return Number(against);
  throw new ActionError("REQUEST_INVALID", '"against" must be "master", "production" or the ID of a version');
}

export type ActionComparisons = ReturnType<typeof createComparison>;

export function createComparison({ db }: { db: DataSource }) {
  /** Returns the live version of a draft. @throws ACTION_NOT_PUBLISHED */
  async function readProduction(masterId: number): Promise<ActionRow> {
    const production = await productionOf(db.manager, masterId);
    if (!production) throw new ActionError("ACTION_NOT_PUBLISHED");
    return production;
  }

  /** Reads one side of a comparison. @throws VERSION_NOT_FOUND, ACTION_NOT_PUBLISHED */
  async function readState(masterId: number, master: ActionInput, side: ComparedSide): Promise<State> {
    if (side === "master") return { side, input: master };
    if (side !== "production") return { side, input: asRestored((await findVersion(db, masterId, side)).data, master) };
    return { side, input: inputOf(await readProduction(masterId)) };
  }

  return {
    /**
     * Compares a version with the draft, with the live version or with another version.
     * @param against `master`, `production` or the ID of a version
     * @throws ACTION_NOT_FOUND, ACTION_NOT_V3, VERSION_NOT_FOUND, ACTION_NOT_PUBLISHED, REQUEST_INVALID
     */
    async compareVersion(appId: number, actionId: number, versionId: number, against: string): Promise<Comparison> {
      const side = parseSide(against);
      const master = inputOf(await findAction(db.manager, appId, actionId));
      const from = await readState(actionId, master, versionId);
      return compareStates(appId, from, await readState(actionId, master, side));
    },

    /**
     * Compares the live version with the draft, and so shows the changes that publishing would make. @param actionId ID
     * of the draft or of the live version
     * @throws ACTION_NOT_FOUND, ACTION_NOT_V3, ACTION_NOT_PUBLISHED
     */
    async compareLive(appId: number, actionId: number): Promise<Comparison> {
      const foundAction = await findAction(db.manager, appId, actionId);
      const master =
        foundAction.masterId === null ? foundAction : await findAction(db.manager, appId, foundAction.masterId);
      const production = await readProduction(master.id);
      const stateOf = (side: ComparedSide, row: ActionRow): State => ({
        side,
        input: inputOf(row),
        assets: scriptsOf(row),
      });
      return compareStates(appId, stateOf("production", production), stateOf("master", master));
    },
  };
}
