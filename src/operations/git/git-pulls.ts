/** Pulls: applies the definitions of a branch to the drafts, whole or not at all; a tag also publishes the actions that it changes. */
import { isDeepStrictEqual } from "node:util";
import { type EntityManager, IsNull } from "typeorm";
import { ActionRow } from "../../data/action.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import type { Caller, Operation } from "../../rules/access.js";
import { checkRefText, readPullRef, type TakenRef } from "../../rules/git-input.js";
import { reportUnknownField } from "../../rules/unknown-fields.js";
import { inputOf, productionOf } from "../actions/action-rows.js";
import type { Publishing } from "../actions/publishing.js";
import type { ManifestPlan, Manifests } from "../manifest/manifests.js";
import { recordChange } from "../records/audit.js";
import type { GitConnections, GitRow } from "./git-connections.js";
import type { ReadGitProject } from "./git-repository.js";

/** Pulls of this process at once, each of another app. */
const PULLS_AT_ONCE = 2;
const ERROR_MAX_CHARACTERS = 1_000;

/** A pull that was applied or planned. */
export interface GitPull {
  ref: string;
  commit: string;
  plan: ManifestPlan;
  /** Names of the actions that a tag published. */
  published: string[];
}

export interface PullOptions {
  appId: number;
  isPlan: boolean;
  /** Throws FORBIDDEN for an operation that the caller may not do. */
  may: (operation: Operation) => void;
}

/** A draft in the state that a tag publishes. */
interface PublishedDraft {
  id: number;
  name: string;
  updatedAt: string;
}

const namesIn = (document: unknown): Set<string> => {
  const { actions } = document as { actions?: { name?: unknown }[] };
  return new Set((actions ?? []).map(({ name }) => String(name)));
};

export type GitPulls = ReturnType<typeof createGitPulls>;

export function createGitPulls(options: {
  connections: GitConnections;
  readProject: ReadGitProject;
  manifests: Pick<Manifests, "apply">;
  publishing: Pick<Publishing, "publish">;
}) {
  const { connections, readProject, manifests, publishing } = options;
  const line = new FairSemaphore(PULLS_AT_ONCE, 1);

  /** Drafts of the document whose live version differs, in the transaction that has applied it. */
  async function unpublished(manager: EntityManager, appId: number, document: unknown): Promise<PublishedDraft[]> {
    const found: PublishedDraft[] = [];
    for (const name of namesIn(document)) {
      const draft = await manager.findOneBy(ActionRow, { appId, name, masterId: IsNull(), actionVersion: "v3" });
      if (!draft) continue;
      const live = await productionOf(manager, draft.id);
      if (live && isDeepStrictEqual(inputOf(live), inputOf(draft))) continue;
      found.push({ id: draft.id, name, updatedAt: draft.updatedAt.toISOString() });
    }
    return found;
  }

  async function publishAll(caller: Caller, appId: number, drafts: readonly PublishedDraft[], published: string[]) {
    for (const { id, name, updatedAt } of drafts) {
      await publishing.publish(caller, { appId, id, tested: false, precondition: [updatedAt] });
      published.push(name);
    }
  }

  async function pull(
    author: Caller,
    row: GitRow,
    { ref, publishes }: TakenRef,
    { appId, isPlan, may }: PullOptions,
    outcome: { commit: string | null; published: string[] },
  ): Promise<GitPull> {
    may("writeManifest");
    if (publishes) may("publishAction");
    const number = isPlan || publishes ? null : await connections.startBranchPull(appId);
    const { commit, document } = await readProject(appId, row, await connections.tokenOf(appId, row), ref);
    outcome.commit = commit;
    let drafts: PublishedDraft[] = [];
    const caller = { ...author, commit };
    const { plan } = await manifests.apply(caller, document, {
      ...{ appId, isPlan, prune: row.prune, keepsData: false, precondition: undefined, may },
      onApplied: async (manager, { plan: changes }) => {
        if (number !== null) await connections.checkBranchPull(manager, appId, number);
        if (publishes) drafts = await unpublished(manager, appId, document);
        const counts = {
          created: changes.created.length,
          changed: changes.changed.length,
          removed: changes.removed.length,
        };
        await recordChange(manager, caller, { appId, type: "app.git.pull", data: { ref, commit, ...counts } });
      },
    });
    await publishAll(caller, appId, drafts, outcome.published);
    return { ref, commit, plan, published: outcome.published };
  }

  /** Pulls one ref, and stores the outcome unless it is only a plan. One pull of an app at a time. */
  async function pullInTurn(caller: Caller, row: GitRow, taken: TakenRef, options: PullOptions): Promise<GitPull> {
    const { appId, isPlan } = options;
    const leave = await line.enter(appId);
    const outcome = { commit: null as string | null, published: [] as string[] };
    const record = (error: string | null) =>
      connections.recordPull(appId, {
        ...{ ref: taken.ref, ...outcome, at: new Date().toISOString() },
        error: error?.slice(0, ERROR_MAX_CHARACTERS).toWellFormed() ?? null,
      });
    try {
      const pulled = await pull(caller, row, taken, options, outcome);
      if (!isPlan) await record(null);
      return pulled;
    } catch (error) {
      if (!isPlan) await record(error instanceof ActionError ? error.message : "something went wrong in the service");
      throw error;
    } finally {
      leave();
    }
  }

  return {
    pullInTurn,

    /**
     * Pulls the branch, or the tag that `ref` names.
     * @throws NOT_FOUND if no repository is connected; REQUEST_INVALID, GIT_PULL_FAILED, OVERLOADED; errors of manifests and of `may`; for a
     *   tag those of publishing
     */
    async pull(caller: Caller, ref: unknown, options: PullOptions): Promise<GitPull> {
      checkRefText(ref);
      const row = await connections.row(options.appId);
      const taken = row && readPullRef(ref, row);
      reportUnknownField(caller);
      if (!taken) throw new ActionError("NOT_FOUND", "no repository is connected");
      return pullInTurn(caller, row, taken, options);
    },
  };
}
