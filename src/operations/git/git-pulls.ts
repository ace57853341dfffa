/**
 * Pulls a branch or tag of an app's Git repository: applies the manifest in the repository to the app, in one transaction. After the pull
 * of a tag, publishes the changed actions.
 */
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import { type EntityManager, IsNull } from "typeorm";
import { ActionRow } from "../../data/action.js";
import { FairSemaphore } from "../../engine/fair-semaphore.js";
import { ActionError } from "../../errors.js";
import type { Caller, Operation } from "../../rules/access.js";
import { checkGitRefIsText, type PulledRef, parsePullRef, parseReviewedCommitHash } from "../../rules/git-input.js";
import { throwIfUnknownField } from "../../rules/unknown-fields.js";
import { findLiveVersion, pickAuthoredFields } from "../actions/action-rows.js";
import type { ActionPublisher } from "../actions/publishing.js";
import type { ManifestPlan, Manifests } from "../manifest/manifests.js";
import { recordChange } from "../records/audit.js";
import type { GitConnectionRow, GitConnections } from "./git-connections.js";
import type { GitPullOrder, GitPullPosition } from "./git-pull-order.js";
import type { GitRepository } from "./git-repository.js";

/** Maximum number of simultaneous pulls in this process; each app has at most one. A pull mostly waits for the Git server. */
export const CONCURRENT_GIT_PULLS_MAX = 16;
/** Maximum number of pulls of this process that unpack a commit or apply a manifest at the same time. */
const CONCURRENT_APPLIES_MAX = 2;
/** Maximum number of attempts to apply a manifest. An attempt fails if another request changes the app at the same time. */
const APPLY_ATTEMPTS_MAX = 3;
/** Value of `Retry-After` in seconds for a pull whose attempts to apply the manifest all failed. */
const APPLY_RETRY_SECONDS = 5;
/** Maximum length of the stored error message of a pull. */
const PULL_ERROR_MAX_CHARACTERS = 1_000;

/** Result of a pull that was applied, or that was only planned (dry run). */
export interface GitPull {
  ref: string;
  commit: string;
  plan: ManifestPlan;
  /** Names of the actions that the pull published. Empty for a dry run, and for the pull of a branch, which publishes nothing. */
  published: string[];
}

/**
 * A requested pull, which may wait for other pulls. Its functions are called only when the pull starts, because the Git
 * connection and the author's rights may change while the pull waits.
 */
export interface QueuedGitPull {
  appId: number;
  isPlan: boolean;
  /** ID of the webhook that starts the pull; null for a pull by hand. After a webhook, an already published tag is not pulled again. */
  webhookId: number | null;
  /** Commit that the caller has reviewed. The pull fails if the branch or tag has another commit. Null accepts any commit. */
  reviewedCommit: string | null;
  resolveRef: (row: GitConnectionRow | null) => PulledRef | null;
  /** Returns the author of the changes, with current rights. @throws ActionError FORBIDDEN if the author has lost access to the app */
  resolveAuthor: (row: GitConnectionRow) => Promise<Caller>;
  checkPermission: (caller: Caller, operation: Operation) => void;
  /**
   * Aborts when the process stops. An error after the abort is not stored as the pull's result, because another process repeats the pull.
   */
  stopping?: AbortSignal;
}

export interface GitPullInput {
  ref: unknown;
  commit: unknown;
}

export interface GitPullOptions {
  appId: number;
  isPlan: boolean;
  checkPermission: (operation: Operation) => void;
}

/** A draft to publish, unless it has changed since the time `updatedAt`. */
interface DraftToPublish {
  id: number;
  name: string;
  updatedAt: string;
}

interface RunningPull {
  request: QueuedGitPull;
  row: GitConnectionRow;
  pulledRef: PulledRef;
  position: GitPullPosition;
  commit: string | null;
  publishedActions: string[];
}

const readActionNames = (document: unknown): Set<string> => {
  const { actions } = document as { actions?: { name?: unknown }[] };
  return new Set((actions ?? []).map(({ name }) => String(name)));
};

/** Returns the drafts that the manifest contains and that differ from their live versions. Reads them in the transaction of `manager`. */
async function findChangedDrafts(manager: EntityManager, appId: number, document: unknown): Promise<DraftToPublish[]> {
  const drafts: DraftToPublish[] = [];
  for (const name of readActionNames(document)) {
    const draft = await manager.findOneBy(ActionRow, { appId, name, masterId: IsNull(), actionVersion: "v3" });
    if (!draft) continue;
    const live = await findLiveVersion(manager, draft.id);
    const isLive =
      live && isDeepStrictEqual([pickAuthoredFields(live), live.assets], [pickAuthoredFields(draft), draft.assets]);
    if (!isLive) drafts.push({ id: draft.id, name, updatedAt: draft.updatedAt.toISOString() });
  }
  return drafts;
}

interface GitPullsOptions {
  connections: GitConnections;
  order: GitPullOrder;
  repository: GitRepository;
  manifests: Pick<Manifests, "apply">;
  publishing: Pick<ActionPublisher, "publish" | "checkPublishable">;
  log: Logger;
}

/**
 * Returns the author of the pull's changes.
 * @throws ActionError FORBIDDEN if the author may not write the manifest, or may not publish actions in a pull of a tag
 */
async function resolveAuthorWithRights({ request, row, pulledRef }: RunningPull): Promise<Caller> {
  const author = await request.resolveAuthor(row);
  request.checkPermission(author, "writeManifest");
  if (pulledRef.publishesActions) request.checkPermission(author, "publishAction");
  return author;
}

export class GitPulls {
  private readonly pullSlots = new FairSemaphore(CONCURRENT_GIT_PULLS_MAX, 1);
  private readonly applySlots = new FairSemaphore(CONCURRENT_APPLIES_MAX, 1);

  constructor(private readonly options: GitPullsOptions) {}

  /** Tries once to apply the manifest. The result has `plan: null` if another request changed the app at the same time. */
  private async applyOnce(pull: RunningPull, author: Caller, commit: string, document: unknown) {
    const { order, manifests, publishing } = this.options;
    const { request, row, pulledRef, position } = pull;
    const { appId, isPlan, checkPermission } = request;
    const { ref, publishesActions: publishes } = pulledRef;
    const caller = { ...author, commit };
    const outcome = { plan: null as ManifestPlan | null, drafts: [] as DraftToPublish[], isOutdated: false };
    const mode = { prune: row.prune, keepsData: false, keepsPublished: !publishes };
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
          await order.check(manager, position);
          outcome.isOutdated = false;
          if (publishes) {
            outcome.drafts = await findChangedDrafts(manager, appId, document);
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

  /** Applies the manifest. @throws ActionError MANIFEST_CHANGED with `retryAfter` if other requests changed the app during each attempt */
  private async applyManifest(pull: RunningPull, author: Caller, commit: string, document: unknown) {
    for (let attempt = 1; attempt <= APPLY_ATTEMPTS_MAX; attempt += 1) {
      const { plan, drafts } = await this.applyOnce(pull, author, commit, document);
      if (plan) return { plan, drafts };
    }
    throw new ActionError("MANIFEST_CHANGED", undefined, { retryAfter: APPLY_RETRY_SECONDS });
  }

  /** Publishes drafts. Before each one, checks the author's current rights, and that no later pull of the app has started. */
  private async publishDrafts(pull: RunningPull, commit: string, drafts: readonly DraftToPublish[]): Promise<void> {
    const { order, publishing } = this.options;
    const { appId } = pull.request;
    for (const { id, name, updatedAt } of drafts) {
      const author = await resolveAuthorWithRights(pull);
      await order.check(null, pull.position);
      await publishing.publish({ ...author, commit }, { appId, id, tested: false, precondition: [updatedAt] });
      pull.publishedActions.push(name);
    }
  }

  /** Runs a pull. Returns null if a webhook caused the pull, and an earlier pull has already published the tag. */
  private async runPull(pull: RunningPull): Promise<GitPull | null> {
    const { connections, order, repository } = this.options;
    const { request, row, pulledRef, position } = pull;
    const { appId, isPlan, webhookId } = request;
    const { ref, publishesActions: publishes } = pulledRef;
    const author = await resolveAuthorWithRights(pull);
    if (!isPlan) await order.start(position);
    const remoteCommit = await repository.find(appId, row, await connections.readToken(appId, row), ref);
    if (publishes && webhookId !== null && (await order.isPublished(position, ref, remoteCommit.target))) return null;
    if (request.reviewedCommit !== null && remoteCommit.commit !== request.reviewedCommit)
      throw new ActionError(
        "MANIFEST_CHANGED",
        `${ref} must be at the reviewed commit (got the commit ${remoteCommit.commit}); review that commit and pull again`,
      );
    pull.commit = remoteCommit.commit;
    const pack = await remoteCommit.downloadPack();
    const releaseSlot = await this.applySlots.enter(appId);
    try {
      const document = await repository.read(remoteCommit.commit, row.folder, pack);
      const { plan, drafts } = await this.applyManifest(pull, author, remoteCommit.commit, document);
      await this.publishDrafts(pull, remoteCommit.commit, drafts);
      if (publishes && !isPlan) await order.addPublished(position, ref, remoteCommit.target);
      return { ref, commit: remoteCommit.commit, plan, published: pull.publishedActions };
    } finally {
      releaseSlot();
    }
  }

  /** Stores the result of a pull. If this fails, only logs the error. `reason` is the error message of the pull; null if it succeeded. */
  private async recordPull(
    { request, pulledRef, position, commit, publishedActions }: RunningPull,
    reason: string | null,
  ) {
    const { order, log } = this.options;
    if (request.isPlan) return;
    const error = reason?.slice(0, PULL_ERROR_MAX_CHARACTERS).toWellFormed() ?? null;
    const lastPull = { ref: pulledRef.ref, commit, published: publishedActions, error };
    try {
      await order.record(position, lastPull);
    } catch (err) {
      log.error({ err, appId: request.appId }, "the result of a Git pull could not be stored");
    }
  }

  /**
   * Waits until the app has no other pull in progress, and then runs the pull.
   * @returns null if no repository is connected. For a webhook, also null if the connection no longer uses its branch or tag, or if an
   *   earlier pull has already published the tag
   */
  async pullInSlot(request: QueuedGitPull): Promise<GitPull | null> {
    const { appId } = request;
    const releasePullSlot = await this.pullSlots.enter(appId);
    try {
      const row = await this.options.connections.findRow(appId);
      const pulledRef = request.resolveRef(row);
      if (!row || !pulledRef) return null;
      const position: GitPullPosition = {
        appId,
        credentialId: row.credentialId,
        isTag: pulledRef.publishesActions,
        webhookId: request.webhookId,
        number: null,
      };
      const pull: RunningPull = { request, row, pulledRef, position, commit: null, publishedActions: [] };
      let gitPull: GitPull | null;
      try {
        gitPull = await this.runPull(pull);
      } catch (error) {
        const reason =
          error instanceof ActionError ? error.message : "the service failed unexpectedly; its log contains the error";
        if (!request.stopping?.aborted) await this.recordPull(pull, reason);
        throw error;
      }
      if (gitPull) await this.recordPull(pull, null);
      return gitPull;
    } finally {
      releasePullSlot();
    }
  }

  /**
   * Pulls the branch that the app's Git connection names, or the tag in `ref`.
   * @throws NOT_FOUND if no repository is connected; MANIFEST_CHANGED if the branch or tag has another commit than the reviewed one;
   * REQUEST_INVALID, GIT_PULL_FAILED, OVERLOADED; errors of `Manifests.apply`, of publishing and of `checkPermission`
   */
  async pull(
    caller: Caller,
    { ref, commit }: GitPullInput,
    { appId, isPlan, checkPermission }: GitPullOptions,
  ): Promise<GitPull> {
    checkGitRefIsText(ref);
    const reviewedCommit = parseReviewedCommitHash(commit);
    const resolveRef = (row: GitConnectionRow | null) => row && parsePullRef(ref, row);
    const pulledRef = resolveRef(await this.options.connections.findRow(appId));
    throwIfUnknownField(caller);
    const request: QueuedGitPull = {
      ...{
        appId,
        isPlan,
        webhookId: null,
        reviewedCommit,
        resolveRef,
        resolveAuthor: async () => caller,
      },
      checkPermission: (_, operation) => checkPermission(operation),
    };
    const gitPull = pulledRef && (await this.pullInSlot(request));
    if (!gitPull)
      throw new ActionError("NOT_FOUND", "no Git repository is connected to this app; connect a repository first");
    return gitPull;
  }
}
