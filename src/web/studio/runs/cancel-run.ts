/** Cancels a run, for the buttons of all pages. */
import { CancelRun } from "../documents.js";
import { type ApiClient, asApiError } from "../shared/api.js";

/** Cancels a run. Does nothing if the run has already ended, because the page then shows its result. @throws ApiError */
export async function cancelRun(api: ApiClient, appId: number, runId: number): Promise<void> {
  try {
    await api.request(CancelRun, { appId, runId });
  } catch (error) {
    if (asApiError(error).status !== "RUN_NOT_CANCELLABLE") throw error;
  }
}
