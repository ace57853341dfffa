/**
 * Page that exports and imports the app as one manifest, the same document that `svc pull` and `svc push` use. Before an import, the person
 * reviews the changes.
 */
import { useRef, useState } from "react";
import { resolveServiceUrl } from "../../service-address.js";
import { fetchWithSignInRetry } from "../accounts/session-renewal.js";
import { ApiError, asApiError, throwOffline } from "../shared/api-error.js";
import { clearChosenFile } from "../shared/clear-choice.js";
import type { ManifestPlan } from "../shared/model.js";
import type { PageProps } from "../shell/page-props.js";
import { isEmptyPlan, PlanList } from "./manifest-plan.js";

interface ManifestFault {
  path: string;
  error: string;
}

/**
 * Manifest that a person imports, and the changes that it would make or has made. `versionTag` is the tag of the app's state for which the
 * service has computed these changes, or after the import the tag of the new state.
 */
interface ManifestToImport {
  manifestText: string;
  plan: ManifestPlan;
  versionTag: string;
  isApplied: boolean;
}

const MAX_FAULTS_SHOWN = 50;

/**
 * Sends the manifest. With `isPlan`, the service only computes the changes; otherwise it applies them. Uses REST, because GraphQL requests
 * are limited to 1 MB. @throws ApiError; for an invalid manifest, its message lists the first MAX_FAULTS_SHOWN faults
 */
async function sendManifest(
  appId: number,
  manifestText: string,
  { tag, isPlan }: { tag?: string; isPlan: boolean },
): Promise<ManifestToImport> {
  const address = resolveServiceUrl(`/v1/apps/${appId}/manifest${isPlan ? "?plan=true" : ""}`);
  const headers = { "content-type": "application/json", ...(tag !== undefined && { "if-match": tag }) };
  const response = await fetchWithSignInRetry(address, { method: "PUT", headers, body: manifestText });
  const body = (await response.json().catch(throwOffline)) as {
    plan: ManifestPlan;
    status?: string;
    error?: string;
    faults?: ManifestFault[];
  };
  if (response.ok)
    return {
      manifestText,
      plan: body.plan,
      versionTag: response.headers.get("etag") ?? "",
      isApplied: !isPlan,
    };
  const faults = (body.faults ?? [])
    .slice(0, MAX_FAULTS_SHOWN)
    .map(({ path, error }) => (path === "" ? error : `${path}: ${error}`));
  const message =
    faults.length > 0 ? faults.join("\n") : (body.error ?? `the service responded with HTTP status ${response.status}`);
  throw new ApiError(body.status ?? "INTERNAL_ERROR", message);
}

export function TransferPage({ api: _, appId, actions, reloadApps }: PageProps) {
  const [manifest, setManifest] = useState<ManifestToImport | null>(null);
  const [fault, setFault] = useState<string | null>(null);

  const [isBusy, setBusy] = useState(false);
  /**
   * Number of files chosen plus imports started so far. The page ignores a response if this number has grown since its
   * request.
   */
  const latestChoice = useRef(0);

  const applyNewestResult = async (sendRequest: () => Promise<ManifestToImport>) => {
    latestChoice.current += 1;
    const choiceNumber = latestChoice.current;
    setBusy(true);
    setFault(null);
    try {
      const result = await sendRequest();
      if (choiceNumber === latestChoice.current) setManifest(result);
      if (result.isApplied) await Promise.all([actions.reloadActions(), reloadApps()]);
    } catch (error) {
      if (choiceNumber === latestChoice.current) setFault(asApiError(error).message);
    }
    if (choiceNumber === latestChoice.current) setBusy(false);
  };
  const readFile = async (file: File | undefined) => {
    setManifest(null);
    if (file) await applyNewestResult(async () => sendManifest(appId, await file.text(), { isPlan: true }));
  };
  return (
    <>
      <section aria-labelledby="export">
        <h3 id="export">Export</h3>
        <p>
          The export is one document with all definitions of the app: actions, data sources, alerts, settings and secret
          bindings. It contains no entries, and no values of private and protected settings.
        </p>
        <p>
          <a
            className="button"
            download={`app-${appId}.json`}
            href={resolveServiceUrl(`/v1/apps/${appId}/manifest`).href}
          >
            Export the app
          </a>
        </p>
      </section>
      <section aria-labelledby="import">
        <h3 id="import">Import</h3>
        <p>
          An import creates and changes parts of the app by their names. Parts that the file does not contain stay. The
          service imports all of the file or nothing, and publishes nothing.
        </p>
        <p>
          <input
            type="file"
            accept="application/json,.json"
            aria-label="File to import"
            onClick={clearChosenFile}
            onChange={(event) => void readFile(event.target.files?.[0])}
          />
        </p>
        <p className="fault" role="alert" style={{ whiteSpace: "pre-line" }}>
          {fault}
        </p>
        {manifest && isEmptyPlan(manifest.plan) && <p className="hint">The app has everything of the file already.</p>}
        {manifest && (
          <PlanList
            plan={manifest.plan}
            label={manifest.isApplied ? "Changes of the import" : "Changes that an import would make"}
          />
        )}
        {manifest && !manifest.isApplied && !isEmptyPlan(manifest.plan) && (
          <p>
            <button
              type="button"
              className="primary"
              disabled={isBusy}
              onClick={() =>
                void applyNewestResult(() =>
                  sendManifest(appId, manifest.manifestText, { tag: manifest.versionTag, isPlan: false }),
                )
              }
            >
              Import it
            </button>
          </p>
        )}
        {manifest?.isApplied && <p role="status">Imported.</p>}
      </section>
    </>
  );
}
