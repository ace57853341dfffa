/**
 * Pulls a branch or tag of an app's Git repository: applies the manifest in the repository to the app, in one
 * transaction. The pull of a tag then also publishes the actions that it changes.
 */
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import { type EntityManager, IsNull } from "typeorm";
import { ActionRow } from "../../data/action.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import type { Caller, Operation } from "../../rules/access.js";
import { checkRefText, type PulledRef, readPullRef, readReviewedCommit } from "../../rules/git-input.js";
import { reportUnknownField } from "../../rules/unknown-fields.js";
import { authoredFieldsOf, findLiveVersion } from "../actions/action-rows.js";
import type { Publishing } from "../actions/publishing.js";
import type { ManifestPlan, Manifests } from "../manifest/manifests.js";
import { recordChange } from "../records/audit.js";
import type { GitConnections, GitRow } from "./git-connections.js";
import type { GitPullOrder, PullTurn } from "./git-pull-order.js";
import type { GitRepository } from "./git-repository.js";

/** Maximum number of concurrent pulls of this process, each of another app. A pull mostly waits for the Git server. */
export const PULLS_AT_ONCE = 16;
/** Maximum number of pulls of this process that unpack a commit or apply a manifest at the same time. */
const APPLIES_AT_ONCE = 2;
/** Maximum number of attempts to apply a manifest, because other requests may change the app at the same time. */
const APPLY_ATTEMPTS = 3;
/** Maximum length of a stored error. */
const ERROR_MAX_CHARACTERS = 1_000;

/** Result of a pull that was applied or only planned. */
export interface GitPull {
  ref: string;
  commit: string;
  plan: ManifestPlan;
  /** Names of the actions that the pull of a tag published. */
  published: string[];
}

/**
 * A pull that waits for its turn. Its functions are called when the pull starts, because the connection and the rights
 * may change until then.
 */
export interface PullRequest {
  appId: number;
  isPlan: boolean;
  /**
   * True to skip a tag that was already published with the same target. Set for webhooks, because a Git server may
   * deliver a webhook twice.
   */
  skipsPublished: boolean;
  /**
   * Hash of the commit that the caller has reviewed. The pull fails if the branch or tag has another commit. Null
   * accepts any commit.
   */
  reviewedCommit: string | null;
  /** Returns the branch or tag to pull; null to pull nothing. */
  refOf: (row: GitRow | null) => PulledRef | null;
  /** Returns the author of the changes, with the author's current rights. @throws ActionError FORBIDDEN */
  authorOf: (row: GitRow) => Promise<Caller>;
  /** Checks a permission. @throws ActionError FORBIDDEN if the caller may not run the operation */
  checkPermission: (caller: Caller, operation: Operation) => void;
  /**
   * Aborts when the process stops. A later failure is not stored as the result of the pull, because another process
   * repeats the pull.
   */
  stopping?: AbortSignal;
}

/** Fields of a request that have not been validated: the branch or tag, and the commit that the caller has reviewed. */
export interface PullInput {
  ref: unknown;
  commit: unknown;
}

export interface PullOptions {
  appId: number;
  isPlan: boolean;
  /** Checks a permission. @throws ActionError FORBIDDEN if the caller may not run the operation */
  checkPermission: (operation: Operation) => void;
}

/** A draft that the pull of a tag publishes. `updatedAt` is its version after the manifest was applied. */
interface PublishedDraft {
  id: number;
  name: string;
  updatedAt: string;
}

/** A pull in progress. */
interface RunningPull {
  request: PullRequest;
  row: GitRow;
  pulledRef: PulledRef;
  turn: PullTurn;
  commit: string | null;
  published: string[];
}

const namesIn = (document: unknown): Set<string> => {
  const { actions } = document as { actions?: { name?: unknown }[] };
  return new Set((actions ?? []).map(({ name }) => String(name)));
};

/**
 * Returns the drafts in the manifest that differ from their live version. Call it in the transaction that has applied
 * the manifest.
 */
async function changedDrafts(manager: EntityManager, appId: number, document: unknown): Promise<PublishedDraft[]> {
  const drafts: PublishedDraft[] = [];
  for (const name of namesIn(document)) {
    const draft = await manager.findOneBy(ActionRow, { appId, name, masterId: IsNull(), actionVersion: "v3" });
    if (!draft) continue;
    const live = await findLiveVersion(manager, draft.id);
    const isLive =
      live && isDeepStrictEqual([authoredFieldsOf(live), live.assets], [authoredFieldsOf(draft), draft.assets]);
    if (!isLive) drafts.push({ id: draft.id, name, updatedAt: draft.updatedAt.toISOString() });
  }
  return drafts;
}

export type GitPulls = ReturnType<typeof createGitPulls>;

export function createGitPulls(options: {
  connections: GitConnections;
  order: GitPullOrder;
  repository: GitRepository;
  manifests: Pick<Manifests, "apply">;
  publishing: Pick<Publishing, "publish" | "checkPublishable">;
  log: Logger;
}) {
  const { connections, order, repository, manifests, publishing, log } = options;
  const pullSlots = new FairSemaphore(PULLS_AT_ONCE, 1);
  const applySlots = new FairSemaphore(APPLIES_AT_ONCE, 1);

  /** Returns the author of the changes, after checking the author's rights. @throws FORBIDDEN */
  async function checkedAuthor({ request, row, pulledRef }: RunningPull): Promise<Caller> {
    const author = await request.authorOf(row);
    request.checkPermission(author, "writeManifest");
    if (pulledRef.publishesApp) request.checkPermission(author, "publishAction");
    return author;
  }

  /**
   * Applies a manifest in one transaction. @returns the drafts to publish, and the plan; the plan is null if another
   * request has changed the app meanwhile
   */
  async function applyOnce(pull: RunningPull, author: Caller, commit: string, document: unknown) {
    const { request, row, pulledRef, turn } = pull;
    const { appId, isPlan, checkPermission } = request;
    const { ref, publishesApp: publishes } = pulledRef;
    const caller = { ...author, commit };
    const outcome = { plan: null as ManifestPlan | null, drafts: [] as PublishedDraft[], isOutdated: false };
    const mode = { prune: row.prune, keepsData: false, keepsLive: !publishes };
    try {
      const { plan } = await manifests.apply(caller, document, {
        ...{
          appId,
          isPlan,
          ...mode,
          precondition: undefined,
          checkPermission: (operation) => checkPermission(caller, operation),
        },
        onApplied: async (manager, { plan: changes }) => {
          outcome.isOutdated = true;
          await order.check(manager, turn);
          outcome.isOutdated = false;
          if (publishes) {
            outcome.drafts = await changedDrafts(manager, appId, document);
            const ids = outcome.drafts.map(({ id }) => id);
            await publishing.checkPublishable(manager, appId, ids);
          }
          const counts = {
            created: changes.created.length,
            changed: changes.changed.length,
            removed: changes.removed.length,
          };
          await recordChange(manager, caller, { appId, type: "app.git.pull", data: { ref, commit, ...counts } });
        },
      });
      return { ...outcome, plan };
    } catch (error) {
      const isChanged = error instanceof ActionError && error.status === "MANIFEST_CHANGED" && !outcome.isOutdated;
      if (isChanged) return { ...outcome, plan: null };
      throw error;
    }
  }

  /**
   * Applies a manifest. Tries again if another request has changed the app meanwhile. @throws ActionError
   * MANIFEST_CHANGED
   */
  async function applyManifest(pull: RunningPull, author: Caller, commit: string, document: unknown) {
    for (let attempt = 1; attempt <= APPLY_ATTEMPTS; attempt += 1) {
      const { plan, drafts } = await applyOnce(pull, author, commit, document);
      if (plan) return { plan, drafts };
    }
    throw new ActionError("MANIFEST_CHANGED");
  }

  /**
   * Publishes drafts one after the other. Before each draft, checks the author's rights, and that no later pull has
   * started.
   */
  async function publishDrafts(pull: RunningPull, commit: string, drafts: readonly PublishedDraft[]): Promise<void> {
    const { appId } = pull.request;
    for (const { id, name, updatedAt } of drafts) {
      const author = await checkedAuthor(pull);
      await order.check(null, pull.turn);
      await publishing.publish({ ...author, commit }, { appId, id, tested: false, precondition: [updatedAt] });
      pull.published.push(name);
    }
  }

  /** Runs a pull. @returns null for a tag that was already published */
  async function runPull(pull: RunningPull): Promise<GitPull | null> {
    const { request, row, pulledRef, turn } = pull;
    const { appId, isPlan, skipsPublished } = request;
    const { ref, publishesApp: publishes } = pulledRef;
    const author = await checkedAuthor(pull);
    if (!isPlan) await order.start(turn);
    const remoteCommit = await repository.find(appId, row, await connections.tokenOf(appId, row), ref);
    if (publishes && skipsPublished && (await order.isPublished(turn, ref, remoteCommit.target))) return null;
    if (request.reviewedCommit !== null && remoteCommit.commit !== request.reviewedCommit)
      throw new ActionError(
        "MANIFEST_CHANGED",
        `${ref} has another commit than the reviewed one (got ${remoteCommit.commit}); review this commit and pull again`,
      );
    pull.commit = remoteCommit.commit;
    const pack = await remoteCommit.fetch();
    const releaseSlot = await applySlots.enter(appId);
    try {
      const document = await repository.read(remoteCommit.commit, row.folder, pack);
      const { plan, drafts } = await applyManifest(pull, author, remoteCommit.commit, document);
      await publishDrafts(pull, remoteCommit.commit, drafts);
      if (publishes && !isPlan) await order.addPublished(turn, ref, remoteCommit.target);
      return { ref, commit: remoteCommit.commit, plan, published: pull.published };
    } finally {
      releaseSlot();
    }
  }

  /**
   * Stores the result of a pull. If this fails, it is only logged. @param reason error of the pull; null if it
   * succeeded
   */
  async function recordPull({ request, pulledRef, turn, commit, published }: RunningPull, reason: string | null) {
    if (request.isPlan) return;
    const error = reason?.slice(0, ERROR_MAX_CHARACTERS).toWellFormed() ?? null;
    const lastPull = { ref: pulledRef.ref, commit, published, error };
    try {
      await order.record(turn, lastPull);
    } catch (err) {
      log.error({ err, appId: request.appId }, "the result of a Git pull could not be stored");
    }
  }

  /**
   * Waits until the app has no other pull in progress, and then runs the pull. @returns null if there was nothing to
   * pull
   */
  async function pullInTurn(request: PullRequest): Promise<GitPull | null> {
    const { appId } = request;
    const releasePullSlot = await pullSlots.enter(appId);
    try {
      const row = await connections.findRow(appId);
      const pulledRef = request.refOf(row);
      if (!row || !pulledRef) return null;
      const turn: PullTurn = { appId, credentialId: row.credentialId, publishes: pulledRef.publishesApp, number: null };
      const pull: RunningPull = { request, row, pulledRef, turn, commit: null, published: [] };
      let pulled: GitPull | null;
      try {
        pulled = await runPull(pull);
      } catch (error) {
        const reason =
          error instanceof ActionError ? error.message : "the service failed unexpectedly; its log contains the error";
        if (!request.stopping?.aborted) await recordPull(pull, reason);
        throw error;
      }
      if (pulled) await recordPull(pull, null);
      return pulled;
    } finally {
      releasePullSlot();
    }
  }

  return {
    pullInTurn,

    /**
     * Pulls the connection's branch, or the tag in `ref`.
     * @throws NOT_FOUND if no repository is connected; MANIFEST_CHANGED if the commit is not the reviewed one;
     *   REQUEST_INVALID, GIT_PULL_FAILED, OVERLOADED; errors of manifests and of `checkPermission`; for a tag also errors of
     *   publishing
     */
    async pull(
      caller: Caller,
      { ref, commit }: PullInput,
      { appId, isPlan, checkPermission }: PullOptions,
    ): Promise<GitPull> {
      checkRefText(ref);
      const reviewedCommit = readReviewedCommit(commit);
      const refOf = (row: GitRow | null) => row && readPullRef(ref, row);
      const pulledRef = refOf(await connections.findRow(appId));
      reportUnknownField(caller);
      const request: PullRequest = {
        ...{ appId, isPlan, skipsPublished: false, reviewedCommit, refOf, authorOf: async () => caller },
        checkPermission: (_, operation) => checkPermission(operation),
      };
      const pulled = pulledRef && (await pullInTurn(request));
      if (!pulled) throw new ActionError("NOT_FOUND", "no Git repository is connected to this app");
      return pulled;
    },
  };
}
