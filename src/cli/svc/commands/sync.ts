/**
 * svc pull, push, diff and status: compare the project folder with the drafts on the server. A push saves everything or nothing. A pull
 * with a conflict writes nothing, except with --force.
 */
import { type Command, Option } from "commander";
import { ServiceResponseError } from "../client.js";
import { CliError, EXIT_CODES } from "../failure.js";
import {
  compareManifests,
  computeManifestAfterPlan,
  type Manifest,
  type ManifestDifference,
  omitEqualCode,
} from "../manifest.js";
import { type LastSyncState, Project } from "../project.js";
import type { CliSession, CommandRunner } from "../session.js";

const MANIFEST_ROUTE = "/v1/apps/:app/manifest";
const EMPTY_MANIFEST: Manifest = { version: 1 };

interface PlannedChange {
  kind: string;
  name: string;
}

interface PushPlan {
  created: PlannedChange[];
  changed: PlannedChange[];
  removed: PlannedChange[];
  /** Secret bindings that do not work until the value of their setting is written; absent if there are none. */
  missing?: PlannedChange[];
}

async function readServerState({ client }: CliSession): Promise<LastSyncState> {
  const { body, headers } = await client.sendRequest("GET", MANIFEST_ROUTE);
  return { tag: headers.get("etag") ?? "", manifest: body };
}

const summarizeChanges = (changes: readonly ManifestDifference[]) =>
  changes.map(({ kind, name, change }) => ({ kind, name, change }));

function printDifferences({ output }: CliSession, changes: readonly ManifestDifference[]): void {
  for (const { patch } of changes) {
    for (const line of patch.split("\n").slice(2)) {
      const style = line.startsWith("+")
        ? "green"
        : line.startsWith("-")
          ? "red"
          : line.startsWith("@@")
            ? "cyan"
            : undefined;
      output.writeLine(line, style);
    }
  }
}

/** Advice if an item differs in the folder and on the server. A push or pull then loses one of the two versions. */
const FORCE_ADVICE =
  "run svc pull --force to keep the server's versions, or svc push --force to keep the folder's versions";

/**
 * Prints what changed on the server since the last pull or push, and returns an error that names this conflict.
 * @param canPull false if `svc pull` without `--force` would also stop
 */
function createConflictError(
  session: CliSession,
  serverChanges: readonly ManifestDifference[],
  problem: string,
  canPull: boolean,
): CliError {
  for (const { kind, name, change, patch } of serverChanges) {
    session.output.writeNote(`${kind} ${name} was ${change} on the server:\n${patch}`);
  }
  const advice = canPull ? "run svc pull, and then repeat svc push" : FORCE_ADVICE;
  return new CliError(`${problem}; ${advice}`, EXIT_CODES.failed, {
    status: "MANIFEST_CHANGED",
    differences: serverChanges.map(({ kind, name, change, patch }) => ({ kind, name, change, patch })),
  });
}

export interface ProjectPushOptions {
  prune?: boolean;
  force?: boolean;
}

const getItemKey = ({ kind, name }: ManifestDifference): string => `${kind} ${name}`;

/** Returns a test for items that are equal in the folder and on the server, for example after a push whose response was lost. */
function createEqualItemTest(server: Manifest, local: Manifest): (item: ManifestDifference) => boolean {
  const keysToPush = new Set(compareManifests(server, local, true).map(getItemKey));
  return (item) => !keysToPush.has(getItemKey(item));
}

interface ChangesSinceLastSync {
  serverChanges: ManifestDifference[];
  localChanges: ManifestDifference[];
  /**
   * Items that were changed in the folder and also changed or deleted on the server, with different results. A pull must not overwrite
   * or delete them.
   */
  conflictingItems: ManifestDifference[];
}

function compareWithLastSync(lastSync: LastSyncState | null, server: Manifest, local: Manifest): ChangesSinceLastSync {
  const serverChanges = compareManifests(lastSync?.manifest ?? EMPTY_MANIFEST, server, true);
  const localChanges = compareManifests(lastSync?.manifest ?? server, local, false);
  const serverKeys = new Set(serverChanges.map(getItemKey));
  const localKeys = new Set(localChanges.map(getItemKey));
  // A field that the local item omits counts as unchanged, so that the same change on both sides is no conflict.
  const isEqual = createEqualItemTest(server, local);
  const conflictingItems = compareManifests(local, server, true).filter(
    (item) => localKeys.has(getItemKey(item)) && serverKeys.has(getItemKey(item)) && !isEqual(item),
  );
  return { serverChanges, localChanges, conflictingItems };
}

const canPullWithoutForce = (lastSync: LastSyncState | null, server: Manifest, local: Manifest): boolean =>
  compareWithLastSync(lastSync, server, local).conflictingItems.length === 0;

/** Returns the entity tag to send with a push. @throws CliError if the server has changes that this folder lacks, unless `force` is set */
function checkConflictsBeforePush(
  session: CliSession,
  lastSync: LastSyncState | null,
  server: LastSyncState,
  local: Manifest,
  force: boolean,
): string {
  if (lastSync?.tag === server.tag || force) return server.tag;
  const serverChanges = compareManifests(lastSync?.manifest ?? EMPTY_MANIFEST, server.manifest, true);
  if (lastSync) {
    if (serverChanges.every(createEqualItemTest(server.manifest, local))) return server.tag;
    const canPull = canPullWithoutForce(lastSync, server.manifest, local);
    throw createConflictError(session, serverChanges, "the server has changed since the last pull or push", canPull);
  }
  // Without an earlier pull or push, this push must not overwrite an item of the server that differs from the folder's item.
  const overwrittenItems = compareManifests(server.manifest, local, false).filter(({ change }) => change === "changed");
  if (overwrittenItems.length === 0) return server.tag;
  throw createConflictError(session, overwrittenItems, "the server has changes that this folder has not pulled", false);
}

/** Sends the manifest. Resolves to the changes on the server, and to the entity tag of the server's manifest after the changes. */
async function putManifest(
  { client }: CliSession,
  local: Manifest,
  tag: string,
  query: Record<string, boolean>,
): Promise<{ plan: PushPlan; tag: string }> {
  const { body, headers } = await client.sendRequest("PUT", MANIFEST_ROUTE, {
    body: local,
    headers: { "if-match": tag },
    query,
  });
  return { plan: body.plan, tag: headers.get("etag") ?? "" };
}

export function printBindingsWithoutValue({ output }: CliSession, missing: readonly { name: string }[] = []): void {
  for (const { name } of missing) output.writeLine(`missing  value of ${name}`, "yellow");
}

const listPlannedItems = (plan: PushPlan) =>
  (["created", "changed", "removed"] as const).flatMap((change) =>
    plan[change].map(({ kind, name }) => ({ change, kind, name })),
  );

function printPlan(session: CliSession, plan: PushPlan): void {
  printBindingsWithoutValue(session, plan.missing);
  const styles = { created: "green", changed: "yellow", removed: "red" } as const;
  for (const { change, kind, name } of listPlannedItems(plan))
    session.output.writeLine(`${change.padEnd(8)} ${kind} ${name}`, styles[change]);
}

async function confirmPlan(session: CliSession, plan: PushPlan): Promise<void> {
  printPlan(session, plan);
  if (listPlannedItems(plan).length > 0) await session.confirm("Push these drafts?");
}

/** Compares entity tags without the prefix `W/`, which a proxy adds when it compresses a response. */
const isSameTag = (a: string, b: string): boolean => a.replace(/^W\//, "") === b.replace(/^W\//, "");

/**
 * Returns the definitions that this push left on the server. They do not contain later changes by other people, which the next push must
 * report.
 */
async function computeStateAfterPush(
  session: CliSession,
  stateBefore: LastSyncState,
  local: Manifest,
  pushResult: { plan: PushPlan; tag: string },
): Promise<LastSyncState> {
  const currentState = await readServerState(session);
  if (isSameTag(currentState.tag, pushResult.tag)) return currentState;
  return {
    tag: pushResult.tag,
    manifest: computeManifestAfterPlan(stateBefore.manifest, local, listPlannedItems(pushResult.plan)),
  };
}

/**
 * Saves the folder's definitions as drafts on the server.
 * @param asksForConfirmation true to print the plan (the list of changes) and ask the person before the push. This takes longer, because
 * the service builds the actions twice: for the plan and for the push
 */
export async function pushProject(
  session: CliSession,
  { prune = false, force = false }: ProjectPushOptions,
  asksForConfirmation = true,
): Promise<void> {
  const project = new Project(session.target.root);
  const local = await project.readManifest();
  const server = await readServerState(session);
  const lastSync = project.readLastSync(session.target);
  const tag = checkConflictsBeforePush(session, lastSync, server, local, force);
  const changedManifest = omitEqualCode(local, server.manifest);
  const sendManifest = (query: Record<string, boolean>) =>
    putManifest(session, changedManifest, tag, { ...query, ...(prune && { prune }) });
  try {
    const planResult = asksForConfirmation ? await sendManifest({ plan: true }) : null;
    if (planResult) await confirmPlan(session, planResult.plan);
    const pushResult =
      planResult && listPlannedItems(planResult.plan).length === 0 ? planResult : await sendManifest({});
    const { plan } = pushResult;
    if (!asksForConfirmation) printPlan(session, plan);
    const isChanged = listPlannedItems(plan).length > 0;
    project.saveLastSync(
      session.target,
      isChanged ? await computeStateAfterPush(session, server, changedManifest, pushResult) : server,
    );
    if (isChanged) session.output.writeLine("Pushed", "green");
    else session.output.writeLine("The server has everything already");
    session.output.writeJson({ plan });
  } catch (error) {
    if (!(error instanceof ServiceResponseError && error.status === "MANIFEST_CHANGED")) throw error;
    const currentState = await readServerState(session);
    throw createConflictError(
      session,
      compareManifests(server.manifest, currentState.manifest, true),
      "the app on the server was changed during the push, so nothing was pushed",
      canPullWithoutForce(lastSync, currentState.manifest, local),
    );
  }
}

/** Kinds of definitions that the project stores in one file per kind. A pull replaces such a file as a whole. */
const KINDS_IN_ONE_FILE = ["setting", "secret binding", "alert"];

/** Returns the local items that a pull would restore, change or remove by writing `writtenManifest` into the folder. */
function findReplacedItems(local: Manifest, writtenManifest: Manifest): ManifestDifference[] {
  const restoredItems = compareManifests(local, writtenManifest, false).filter(({ change }) => change === "created");
  // The local manifest is the second argument, so that a field that the local item omits counts as unchanged.
  const lostItems = compareManifests(writtenManifest, local, false).flatMap((difference): ManifestDifference[] => {
    if (difference.change === "changed") return [difference];
    return KINDS_IN_ONE_FILE.includes(difference.kind) ? [{ ...difference, change: "removed" }] : [];
  });
  return [...restoredItems, ...lostItems];
}

async function pullProject(session: CliSession, { force = false }: { force?: boolean }): Promise<void> {
  const project = new Project(session.target.root);
  const server = await readServerState(session);
  const lastSync = project.readLastSync(session.target);
  const local = await project.readManifest();
  const { serverChanges, localChanges, conflictingItems } = compareWithLastSync(lastSync, server.manifest, local);
  const serverKeys = new Set(serverChanges.map(getItemKey));
  const localKeys = new Set(localChanges.map(getItemKey));
  if (conflictingItems.length > 0 && !force) {
    printDifferences(session, conflictingItems);
    const itemNames = conflictingItems.map(({ kind, name }) => `${kind} ${name}`).join(", ");
    throw new CliError(
      `${itemNames} changed in this folder and also on the server; ${FORCE_ADVICE}`,
      EXIT_CODES.failed,
      {
        differences: conflictingItems.map(({ kind, name, change, patch }) => ({ kind, name, change, patch })),
      },
    );
  }
  // A pull does not overwrite the items that changed in the folder. The check above rejected the conflicts with the server.
  const isTakenFromServer = (kind: string, name: unknown) => force || !localKeys.has(`${kind} ${String(name)}`);
  const settings =
    force || localKeys.size === 0
      ? server.manifest.settings
      : mergeItems(server.manifest.settings, local.settings, "key", (key) => isTakenFromServer("setting", key));
  const alerts = mergeItems(server.manifest.alerts, local.alerts, "name", (name) => isTakenFromServer("alert", name));
  // Writes either the folder's secret bindings or the server's. A mix of both lists could send a secret to a wrong destination.
  const keepsBindings = localChanges.some(({ kind }) => kind === "secret binding") && !force;
  const writtenManifest: Manifest = {
    ...server.manifest,
    ...(local.app && !isTakenFromServer("app", "app") && { app: local.app }),
    ...(settings && { settings }),
    ...(alerts && { alerts }),
    ...(keepsBindings && local.secretBindings && { secretBindings: local.secretBindings }),
    actions: (server.manifest.actions ?? []).filter(({ name }) => isTakenFromServer("action", name)),
    dataSources: (server.manifest.dataSources ?? []).filter(({ name }) => isTakenFromServer("data source", name)),
  };
  const furtherChanges = findReplacedItems(local, writtenManifest).filter((item) => !serverKeys.has(getItemKey(item)));
  await project.writeManifest(writtenManifest);
  for (const { kind, name, change } of serverChanges)
    if (change === "removed" && isTakenFromServer(kind, name)) await project.removeItem(kind, name);
  project.saveLastSync(session.target, server);
  const changeSummary = summarizeChanges([...serverChanges, ...furtherChanges]);
  for (const { kind, name, change } of changeSummary) session.output.writeLine(`${change.padEnd(8)} ${kind} ${name}`);
  session.output.writeLine(changeSummary.length === 0 ? "This folder has everything already" : "Pulled", "green");
  session.output.writeJson({ pulled: changeSummary });
}

type Items = Manifest["settings"];

/**
 * Merges two lists of items by `key`. Takes the server's item if `isTakenFromServer` is true for its name, otherwise the folder's item.
 */
function mergeItems(server: Items, local: Items, key: string, isTakenFromServer: (name: unknown) => boolean): Items {
  const localItems = (local ?? []).filter((item) => !isTakenFromServer(item[key]));
  const names = new Set(localItems.map((item) => item[key]));
  return [...(server ?? []).filter((item) => !names.has(item[key])), ...localItems];
}

async function showDiff(session: CliSession, options: { exitCode?: boolean }): Promise<number> {
  const project = new Project(session.target.root);
  const server = await readServerState(session);
  const changes = compareManifests(server.manifest, await project.readManifest(), false);
  printDifferences(session, changes);
  if (changes.length === 0) session.output.writeLine("The folder and the server are the same");
  session.output.writeJson({ differences: changes });
  return options.exitCode === true && changes.length > 0 ? EXIT_CODES.different : EXIT_CODES.done;
}

async function showStatus(session: CliSession): Promise<void> {
  const project = new Project(session.target.root);
  const { url, app, root } = session.target;
  const server = await readServerState(session);
  const local = summarizeChanges(compareManifests(server.manifest, await project.readManifest(), false));
  const lastSync = project.readLastSync(session.target);
  const isBehind = lastSync !== null && lastSync.tag !== server.tag;
  session.output.writeLine(`app ${app} at ${url}`);
  session.output.writeLine(`folder ${root}`);
  session.output.writeLine(
    lastSync
      ? isBehind
        ? "the server has changed since the last pull or push"
        : "up to date with the server"
      : "never pulled",
  );
  for (const { kind, name, change } of local) session.output.writeLine(`${change.padEnd(8)} ${kind} ${name}`);
  if (local.length === 0) session.output.writeLine("no local changes");
  session.output.writeJson({ url, app, root, pulled: lastSync !== null, behind: isBehind, changes: local });
}

export function addSyncCommands(program: Command, run: CommandRunner): void {
  program
    .command("pull")
    .description("write the server's drafts into this folder")
    .option("--force", "replace files that changed here and on the server")
    .action((options: { force?: boolean }) => run((session) => pullProject(session, options)));
  program
    .command("push")
    .description("save all items of this folder as drafts on the server, or none if one is invalid; publishes nothing")
    .option("--prune", "remove drafts that this folder does not have; asks for confirmation unless --yes is set")
    .addOption(new Option("--force", "replace what was changed on the server since the last pull or push"))
    .action((options: ProjectPushOptions) => run((session) => pushProject(session, options)));
  program
    .command("diff")
    .description("show what a push would change")
    .option("--exit-code", `exit with ${EXIT_CODES.different} if there are differences`)
    .action((options: { exitCode?: boolean }) => run((session) => showDiff(session, options)));
  program
    .command("status")
    .description("show the app, the server and local changes")
    .action(() => run((session) => showStatus(session)));
}
