/** svc publish, rollback and versions: change the live versions of actions, and list their history. */
import type { Command } from "commander";
import { describeValue } from "../../../rules/describe-value.js";
import { ACTIONS_ROUTE, type ActionRecord, listActions, requireActionByName } from "../actions.js";
import { ServiceResponseError } from "../client.js";
import { CliError, createUsageError } from "../failure.js";
import { omitEqualCode } from "../manifest.js";
import { Project } from "../project.js";
import { restoreAndPublish } from "../rollback.js";
import type { CliSession, CommandRunner } from "../session.js";
import { runProjectTests } from "../tests.js";

const MANIFEST_ROUTE = "/v1/apps/:app/manifest";

interface PublishOptions {
  tested?: boolean;
  service?: boolean;
  withApp?: boolean;
}

/** Checks that each action has a test, and that the tests ran with the code of the current drafts. @throws CliError otherwise */
async function requireTested(
  session: CliSession,
  testedNames: readonly string[],
  chosenActions: readonly ActionRecord[],
) {
  const names = chosenActions.map(({ name }) => name);
  const untestedNames = names.filter((name) => !testedNames.includes(name));
  if (untestedNames.length > 0)
    throw new CliError(
      `the actions ${untestedNames.join(", ")} have no test, so nothing was published; write tests, or omit --tested`,
    );
  const local = await new Project(session.target.root).readManifest();
  const { body: server } = await session.client.sendRequest("GET", MANIFEST_ROUTE);
  const request = { body: omitEqualCode(local, server), query: { plan: true } };
  const { body: planResponse } = await session.client.sendRequest("PUT", MANIFEST_ROUTE, request);
  const changedActions = (planResponse.plan.changed as { kind: string; name: string }[]).filter(
    ({ kind, name }) => kind === "action" && names.includes(name),
  );
  if (changedActions.length === 0) return;
  const actionNames = changedActions.map(({ name }) => name).join(", ");
  throw new CliError(
    `the tests ran with the local code of ${actionNames}, which differs from the drafts on the server; run svc push first`,
  );
}

async function publishActions(session: CliSession, names: readonly string[], options: PublishOptions): Promise<void> {
  const { client, output } = session;
  const isTested = options.tested === true;
  if (options.service === true && !isTested) throw createUsageError("--service needs --tested");
  const testedNames = isTested
    ? (
        await runProjectTests(session, names, { usesTemporaryService: options.service === true, isRepeated: false })
      ).map(({ action }) => action)
    : [];
  const allActions = await listActions(client);
  const unknownName = names.find((name) => !allActions.some((action) => action.name === name));
  if (unknownName !== undefined) throw new CliError(`the app has no action named ${JSON.stringify(unknownName)}`);
  const chosenActions = names.length === 0 ? allActions : allActions.filter(({ name }) => names.includes(name));
  const actionsToPublish: ActionRecord[] = [];
  for (const action of chosenActions) {
    const shouldPublish = names.length > 0 || (await differsFromLive(session, action.id));
    if (shouldPublish) actionsToPublish.push(action);
  }
  if (isTested) await requireTested(session, testedNames, actionsToPublish);
  if (actionsToPublish.length === 0) output.writeLine("Every draft is published already");
  else await session.confirm(`Publish ${actionsToPublish.map(({ name }) => name).join(", ")}?`);
  if (options.withApp === true) await client.sendRequest("POST", "/v1/apps/:app/publish");
  for (const { id, name, updatedAt } of actionsToPublish) {
    // Sends the version of the tested draft, so that the service rejects the request if the draft was changed after the tests.
    const request = isTested ? { query: { tested: true }, headers: { "if-match": `"${updatedAt}"` } } : {};
    await client.sendRequest("POST", `${ACTIONS_ROUTE}/${id}/publish`, request);
    output.writeLine(`published ${name}`, "green");
  }
  output.writeJson({ published: actionsToPublish.map(({ name }) => name) });
}

const isDifferent = (diff: { changes: unknown[]; code: string | null }): boolean =>
  diff.changes.length > 0 || diff.code !== null;

/** True if the action has no live version, or its draft differs from the live version. */
async function differsFromLive({ client }: CliSession, id: number): Promise<boolean> {
  try {
    const { body } = await client.sendRequest("GET", `${ACTIONS_ROUTE}/${id}/diff`);
    return isDifferent(body.diff);
  } catch (error) {
    if (error instanceof ServiceResponseError && error.status === "ACTION_NOT_PUBLISHED") return true;
    throw error;
  }
}

interface Version {
  id: number;
  createdAt: string;
  action: string;
  user: { firstName: string; lastName: string } | null;
  /** Time at which the version was published. Present only in lists of published versions. */
  publishedAt?: string;
}

const listVersions = async ({ client }: CliSession, id: number, onlyPublished: boolean): Promise<Version[]> =>
  (
    await client.sendRequest("GET", `${ACTIONS_ROUTE}/${id}/versions`, {
      query: { limit: 100, published: `${onlyPublished}` },
    })
  ).body.versions;

/** Returns the ID of the last published version that differs from the current live version. @throws CliError if there is none */
async function findPreviousLiveVersion(session: CliSession, id: number): Promise<number> {
  for (const version of await listVersions(session, id, true)) {
    const path = `${ACTIONS_ROUTE}/${id}/versions/${version.id}/diff`;
    const { body } = await session.client.sendRequest("GET", path, { query: { against: "production" } });
    if (isDifferent(body.diff)) return version.id;
  }
  throw new CliError(
    "the action has no earlier live version; choose a version that `svc versions` prints, and pass its ID with --to",
  );
}

export function addPublishCommand(program: Command, run: CommandRunner): void {
  program
    .command("publish")
    .argument("[actions...]", "names of actions; default: all changed actions")
    .description("make drafts the live versions")
    .option("--tested", "run the tests first, and publish nothing if one fails or an action has none")
    .option("--service", "with --tested: run the tests in a service that this command starts, and deletes at the end")
    .option("--with-app", "publish the app too, which must be published to have live actions")
    .action((names: string[], options: PublishOptions) => run((session) => publishActions(session, names, options)));

  program
    .command("versions")
    .argument("<action>", "name of the action")
    .description("list the versions of an action, newest first")
    .option("--published", "only the versions that were live, last published first")
    .action((name: string, { published = false }: { published?: boolean }) =>
      run(async (session) => {
        const { id } = await requireActionByName(session.client, name);
        const versions = await listVersions(session, id, published);
        session.output.writeTable(
          versions.map(({ id: versionId, createdAt, publishedAt, action, user }) => [
            String(versionId),
            publishedAt ?? createdAt,
            action,
            user ? `${user.firstName} ${user.lastName}` : "",
          ]),
        );
        session.output.writeJson({ versions });
      }),
    );

  program
    .command("rollback")
    .argument("<action>", "name of the action")
    .description("restore an earlier version of an action and publish it")
    .option("--to <version>", "ID of the version; default: the version that was live before")
    .action((name: string, { to }: { to?: string }) =>
      run(async (session) => {
        if (to !== undefined && !/^[1-9]\d*$/.test(to))
          throw createUsageError(`--to must be the ID of a version, a positive integer (got ${describeValue(to)})`);
        const action = await requireActionByName(session.client, name);
        const versionId = to === undefined ? await findPreviousLiveVersion(session, action.id) : Number(to);
        await session.confirm(`Restore version ${versionId} of ${name} and publish it?`);
        await restoreAndPublish(session.client, action, versionId);
        session.output.writeLine(`${name} is version ${versionId} again`, "green");
        session.output.writeJson({ action: name, versionId });
      }),
    );
}
