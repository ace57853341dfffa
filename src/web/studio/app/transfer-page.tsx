/** The app's actions as one file, out and in again: what an import would do is shown before it is done. */
import { useState } from "react";
import { serviceAddress } from "../../service-address.js";
import { ImportActions, type ImportDocumentInput } from "../documents.js";
import { asApiError } from "../shared/api.js";
import type { ImportReport } from "../shared/model.js";
import type { PageProps } from "../shell/page-props.js";

function Names({ label, names }: { label: string; names: string[] }) {
  if (names.length === 0) return null;
  return (
    <li>
      <b>
        {names.length} {label}
      </b>
      <span className="hint grow">{names.join(", ")}</span>
    </li>
  );
}

function Report({ report }: { report: ImportReport }) {
  const { dryRun, created, updated, unchanged, faults } = report;
  return (
    <ul className="records" aria-label={dryRun ? "What an import would do" : "What the import has done"}>
      <Names label={dryRun ? "would be created" : "created"} names={created} />
      <Names
        label={dryRun ? "would change" : "changed"}
        names={updated.map(({ name, fields }) => `${name} (${fields.join(", ")})`)}
      />
      <Names label="are the same already" names={unchanged} />
      {faults.map(({ index, name, status, error }) => (
        <li key={index}>
          <b>{name ?? `action ${index + 1} of the file`}</b>
          <span className="fault grow">
            {error} <code>{status}</code>
          </span>
        </li>
      ))}
    </ul>
  );
}

interface Chosen {
  document: ImportDocumentInput;
  report: ImportReport;
}

export function TransferPage({ api, appId, actions }: PageProps) {
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [fault, setFault] = useState<string | null>(null);

  const send = async (document: ImportDocumentInput, dryRun: boolean) => {
    setFault(null);
    try {
      const { report } = await api.ask(ImportActions, { appId, document, dryRun });
      setChosen({ document, report });
      if (!dryRun) await actions.reload();
    } catch (error) {
      setFault(asApiError(error).message);
    }
  };
  const take = async (file: File | undefined) => {
    setChosen(null);
    if (!file) return;
    try {
      await send(JSON.parse(await file.text()) as ImportDocumentInput, true);
    } catch (error) {
      setFault(`${file.name} holds no JSON: ${(error as Error).message}`);
    }
  };
  const ready = chosen?.report.dryRun && chosen.report.faults.length === 0;
  return (
    <>
      <h3>Export</h3>
      <p>All actions without ids, settings and history, for another app or for version control.</p>
      <p>
        <a
          className="button"
          download={`actions-of-app-${appId}.json`}
          href={serviceAddress(`/v3/apps/${appId}/actions/export`).href}
        >
          Export the actions
        </a>
      </p>
      <h3>Import</h3>
      <p>Actions are created and changed by name; others stay as they are. All of the file, or nothing.</p>
      <p>
        <input
          type="file"
          accept="application/json,.json"
          aria-label="File to import"
          onChange={(event) => void take(event.target.files?.[0])}
        />
      </p>
      <p className="fault" role="alert">
        {fault}
      </p>
      {chosen && <Report report={chosen.report} />}
      {ready && (
        <p>
          <button type="button" className="primary" onClick={() => void send(chosen.document, false)}>
            Import it
          </button>
        </p>
      )}
    </>
  );
}
