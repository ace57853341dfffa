/**
 * Pulls a branch or tag of an app's git repository: applies its definitions to the drafts, all or none. A tag also
 * publishes the actions that it changes.
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
import { inputOf, productionOf } from "../actions/action-rows.js";
import type { Publishing } from "../actions/publishing.js";
import type { ManifestPlan, Manifests } from "../manifest/manifests.js";
import { recordChange } from "../records/audit.js";
import type { GitConnections, GitRow } from "./git-connections.js";
import type { GitPullOrder, PullTurn } from "./git-pull-order.js";
import type { GitRepository } from "./git-repository.js";

/** Maximum number of pulls that this process runs at once, each of another app. Most of their time is spent waiting for git servers. */
export const PULLS_AT_ONCE = 16;
/** Maximum number of concurrent pulls of this process that unpack a commit and apply its definitions. */
const APPLIES_AT_ONCE = 2;
/** Attempts to apply a commit while other requests change the app. */
const APPLY_ATTEMPTS = 3;
const ERROR_MAX_CHARACTERS = 1_000;

/** Pull that was applied or planned. */
export interface GitPull {
  ref: string;
  commit: string;
  plan: ManifestPlan;
  /** Names of the actions that a tag published. */
  published: string[];
}

/**
 * A pull that waits for its turn. Its functions are called when the turn comes, because the connection and rights may
 * change until then.
 */
export interface PullRequest {
  appId: number;
  isPlan: boolean;
  /** True to skip a tag that was published with the same target before, because a webhook may be delivered twice. */
  skipsPublished: boolean;
  /** Commit that the caller has reviewed. The pull fails if the ref has another commit. Null accepts any commit. */
  reviewedCommit: string | null;
  /** Returns the ref to pull; null to pull nothing. */
  refOf: (row: GitRow | null) => PulledRef | null;
  /** Returns the author of the changes, with the author's current rights. @throws ActionError FORBIDDEN */
  authorOf: (row: GitRow) => Promise<Caller>;
  /** Checks a permission. @throws ActionError FORBIDDEN for an operation that the caller may not do */
  may: (caller: Caller, operation: Operation) => void;
  /**
   * Aborts when the process stops. A failure after that is not stored as the outcome of the pull, because another
   * process repeats the pull.
   */
  stopping?: AbortSignal;
}

/** Branch or tag, and the commit that the caller expects there, as callers send them. */
export interface PullInput {
  ref: unknown;
  commit: unknown;
}

export interface PullOptions {
  appId: number;
  isPlan: boolean;
  /** Checks a permission. @throws ActionError FORBIDDEN for an operation that the caller may not do */
  may: (operation: Operation) => void;
}

/** A draft that a tag publishes, with the version that was applied. */
interface PublishedDraft {
  id: number;
  name: string;
  updatedAt: string;
}

/** State of a pull that has started. */
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

/** Returns the drafts of the manifest whose live version differs. Call it in the transaction that has applied the manifest. */
async function changedDrafts(manager: EntityManager, appId: number, document: unknown): Promise<PublishedDraft[]> {
  const drafts: PublishedDraft[] = [];
  for (const name of namesIn(document)) {
    const draft = await manager.findOneBy(ActionRow, { appId, name, masterId: IsNull(), actionVersion: "v3" });
    if (!draft) continue;
    const live = await productionOf(manager, draft.id);
    const isLive = live && isDeepStrictEqual([inputOf(live), live.assets], [inputOf(draft), draft.assets]);
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

  /** @throws FORBIDDEN */
  async function checkedAuthor({ request, row, pulledRef }: RunningPull): Promise<Caller> {
    const author = await request.authorOf(row);
    request.may(author, "writeManifest");
    if (pulledRef.publishes) request.may(author, "publishAction");
    return author;
  }

  /** Applies the definitions in one transaction. @returns the plan, and the drafts that a tag publishes */
  async function applyOnce(pull: RunningPull, author: Caller, commit: string, document: unknown) {
    const { request, row, pulledRef, turn } = pull;
    const { appId, isPlan, may } = request;
    const { ref, publishes } = pulledRef;
    const caller = { ...author, commit };
    const outcome = { plan: null as ManifestPlan | null, drafts: [] as PublishedDraft[], isOutdated: false };
    const mode = { prune: row.prune, keepsData: false, keepsLive: !publishes };
    try {
      const { plan } = await manifests.apply(caller, document, {
        ...{ appId, isPlan, ...mode, precondition: undefined, may: (operation) => may(caller, operation) },
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

  /** Applies the definitions, and repeats this if another request has changed the app meanwhile. @throws ActionError MANIFEST_CHANGED */
  async function applyManifest(pull: RunningPull, author: Caller, commit: string, document: unknown) {
    for (let attempt = 1; attempt <= APPLY_ATTEMPTS; attempt += 1) {
      const { plan, drafts } = await applyOnce(pull, author, commit, document);
      if (plan) return { plan, drafts };
    }
    throw new ActionError("MANIFEST_CHANGED");
  }

  /** Publishes the drafts one after the other. Checks the author's rights and the connection again before each. */
  async function publishDrafts(pull: RunningPull, commit: string, drafts: readonly PublishedDraft[]): Promise<void> {
    const { appId } = pull.request;
    for (const { id, name, updatedAt } of drafts) {
      const author = await checkedAuthor(pull);
      await order.check(null, pull.turn);
      await publishing.publish({ ...author, commit }, { appId, id, tested: false, precondition: [updatedAt] });
      pull.published.push(name);
    }
  }

  /** Pulls one ref. @returns null for a tag that was published before */
  async function runPull(pull: RunningPull): Promise<GitPull | null> {
    const { request, row, pulledRef, turn } = pull;
    const { appId, isPlan, skipsPublished } = request;
    const { ref, publishes } = pulledRef;
    const author = await checkedAuthor(pull);
    if (!isPlan) await order.start(turn);
    const remoteCommit = await repository.find(appId, row, await connections.tokenOf(appId, row), ref);
    if (publishes && skipsPublished && (await order.isPublished(turn, ref, remoteCommit.target))) return null;
    if (request.reviewedCommit !== null && remoteCommit.commit !== request.reviewedCommit)
      throw new ActionError("MANIFEST_CHANGED", `${ref} has another commit (got ${remoteCommit.commit})`);
    pull.commit = remoteCommit.commit;
    const pack = await remoteCommit.fetch();
    const free = await applySlots.enter(appId);
    try {
      const document = await repository.read(remoteCommit.commit, row.folder, pack);
      const { plan, drafts } = await applyManifest(pull, author, remoteCommit.commit, document);
      await publishDrafts(pull, remoteCommit.commit, drafts);
      if (publishes && !isPlan) await order.addPublished(turn, ref, remoteCommit.target);
      return { ref, commit: remoteCommit.commit, plan, published: pull.published };
    } finally {
      free();
    }
  }

  /** Stores the outcome of a pull. A failure to store it does not change the outcome. */
  async function recordPull({ request, pulledRef, turn, commit, published }: RunningPull, reason: string | null) {
    if (request.isPlan) return;
    const error = reason?.slice(0, ERROR_MAX_CHARACTERS).toWellFormed() ?? null;
    const lastPull = { ref: pulledRef.ref, commit, published, error };
    try {
      await order.record(turn, lastPull);
    } catch (err) {
      log.error({ err, appId: request.appId }, "the outcome of a pull was not stored");
    }
  }

  /** Pulls when it is the app's turn, because an app has one pull at a time. @returns null if there was nothing to pull */
  async function pullInTurn(request: PullRequest): Promise<GitPull | null> {
    const { appId } = request;
    const freeSlot = await pullSlots.enter(appId);
    try {
      const row = await connections.row(appId);
      const pulledRef = request.refOf(row);
      if (!row || !pulledRef) return null;
      const turn: PullTurn = { appId, credentialId: row.credentialId, publishes: pulledRef.publishes, number: null };
      const pull: RunningPull = { request, row, pulledRef, turn, commit: null, published: [] };
      let pulled: GitPull | null;
      try {
        pulled = await runPull(pull);
      } catch (error) {
        const reason = error instanceof ActionError ? error.message : "something went wrong in the service";
        if (!request.stopping?.aborted) await recordPull(pull, reason);
        throw error;
      }
      if (pulled) await recordPull(pull, null);
      return pulled;
    } finally {
      freeSlot();
    }
  }

  return {
    pullInTurn,

    /**
     * Pulls the branch, or the tag that `ref` names.
     * @throws NOT_FOUND if no repository is connected; MANIFEST_CHANGED for another commit; REQUEST_INVALID, GIT_PULL_FAILED, OVERLOADED; errors of manifests and of `may`; for a
     *   tag those of publishing
     */
    async pull(caller: Caller, { ref, commit }: PullInput, { appId, isPlan, may }: PullOptions): Promise<GitPull> {
      checkRefText(ref);
      const reviewedCommit = readReviewedCommit(commit);
      const refOf = (row: GitRow | null) => row && readPullRef(ref, row);
      const pulledRef = refOf(await connections.row(appId));
      reportUnknownField(caller);
      const request: PullRequest = {
        ...{ appId, isPlan, skipsPublished: false, reviewedCommit, refOf, authorOf: async () => caller },
        may: (_, operation) => may(operation),
      };
      const pulled = pulledRef && (await pullInTurn(request));
      if (!pulled) throw new ActionError("NOT_FOUND", "no repository is connected");
      return pulled;
    },
  };
}
