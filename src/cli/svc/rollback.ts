/** Restores an earlier version of an action and publishes it, for `svc rollback`. If that fails, restores the former draft. */
import { ACTIONS_ROUTE, type ActionRecord } from "./actions.js";
import { type CliApiClient, ServiceResponseError } from "./client.js";
import { CliError, ConnectionError } from "./failure.js";

/** Response of the service to a request that restores a version as the draft. */
interface RestoreResponse {
  /** The draft after the restore. */
  action: { updatedAt: string };
  /** Version with the former draft; null if the service could not store it. */
  preRestoreVersionId: number | null;
}

/** True if the service may have processed the request: the response is missing, or has a status 5xx, which can also come from a proxy. */
const hasUnknownEffect = (error: unknown): boolean =>
  error instanceof ConnectionError || (error instanceof ServiceResponseError && error.http >= 500);

const getMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Returns the error with a text after its message, also in the field `error` of the JSON output. */
function appendToError(error: unknown, text: string): unknown {
  if (!(error instanceof CliError)) return error;
  const { details, exitCode } = error;
  const errorField = details["error"] === undefined ? {} : { error: `${details["error"]}; ${text}` };
  return new CliError(`${error.message}; ${text}`, exitCode, { ...details, ...errorField });
}

async function restoreVersion(
  client: CliApiClient,
  { id, name }: ActionRecord,
  versionId: number,
): Promise<RestoreResponse> {
  try {
    return (await client.sendRequest("POST", `${ACTIONS_ROUTE}/${id}/versions/${versionId}/restore`)).body;
  } catch (error) {
    if (!hasUnknownEffect(error)) throw error;
    throw appendToError(
      error,
      `version ${versionId} may have replaced the draft of ${name}: if svc versions ${name} begins with a pre-restore version, ` +
        "restore that version in Studio to get the former draft back",
    );
  }
}

/** Restores the former draft, unless another person has changed the draft since. Returns null, or the reason why it failed. */
async function restoreFormerDraft(
  client: CliApiClient,
  id: number,
  { action, preRestoreVersionId }: RestoreResponse,
): Promise<string | null> {
  if (preRestoreVersionId === null) return "the service did not store it as a version";
  try {
    await client.sendRequest("POST", `${ACTIONS_ROUTE}/${id}/versions/${preRestoreVersionId}/restore`, {
      headers: { "if-match": `"${action.updatedAt}"` },
    });
    return null;
  } catch (error) {
    return getMessage(error);
  }
}

/**
 * Restores a version as the draft and publishes it. If the publication fails, restores the former draft.
 * @throws CliError with the cause. If the draft is not the former one, or the version may be live, the error says so and what to do
 */
export async function restoreAndPublish(client: CliApiClient, action: ActionRecord, versionId: number): Promise<void> {
  const { id, name } = action;
  const restoreResult = await restoreVersion(client, action, versionId);
  try {
    // With the draft's version, a delayed request cannot publish the former draft after it is restored.
    const headers = { "if-match": `"${restoreResult.action.updatedAt}"` };
    await client.sendRequest("POST", `${ACTIONS_ROUTE}/${id}/publish`, { headers });
  } catch (error) {
    const restoreFault = await restoreFormerDraft(client, id, restoreResult);
    const mayBeLive = hasUnknownEffect(error);
    if (restoreFault === null && !mayBeLive) throw error;
    const publishAdvice = `to publish version ${versionId}, run svc rollback ${name} --to ${versionId}`;
    if (restoreFault === null)
      throw appendToError(
        error,
        `the draft of ${name} is unchanged, but version ${versionId} may be live: ` +
          `to see the live version, run svc versions ${name} --published; ${publishAdvice}`,
      );
    const draftAdvice =
      restoreResult.preRestoreVersionId === null
        ? ""
        : `to get it back, restore version ${restoreResult.preRestoreVersionId} in Studio; `;
    throw appendToError(
      error,
      `version ${versionId} has replaced the draft of ${name}${mayBeLive ? ", and may be live" : ""}; ` +
        `the former draft could not be restored (${restoreFault}): ${draftAdvice}${publishAdvice}`,
    );
  }
}
