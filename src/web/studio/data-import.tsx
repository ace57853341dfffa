/** A file into a data source: what is in it before it is sent, then all of it or nothing. */
import Papa from "papaparse";
import { useState } from "react";
import { serviceAddress } from "../service-address.js";

const PREVIEW_BYTES = 64 * 1024;
const PREVIEW_ROWS = 5;

interface Preview {
  columns: string[];
  rows: Record<string, unknown>[];
}

async function previewOf(file: File): Promise<Preview> {
  const text = await file.slice(0, PREVIEW_BYTES).text();
  if (!/\.csv$/i.test(file.name) && file.type !== "text/csv") return { columns: [], rows: [] };
  const { data, meta } = Papa.parse<Record<string, unknown>>(text, { header: true, preview: PREVIEW_ROWS });
  return { columns: meta.fields ?? [], rows: data };
}

/** @returns how many were taken in @throws Error in the service's words */
export async function sendFile(appId: number, id: number, file: File, append: boolean): Promise<number> {
  const form = new FormData();
  form.append("file", file);
  const path = `/v1/apps/${appId}/data-sources/${id}/import?append=${append}`;
  const response = await fetch(serviceAddress(path), { method: "POST", body: form });
  const body = (await response.json()) as { inserted?: number; error?: string };
  if (!response.ok || body.inserted === undefined)
    throw new Error(body.error ?? `the service answered ${response.status}`);
  return body.inserted;
}

interface DataImportProps {
  /** What the button says. */
  action: string;
  /** Whether entries that are there can stay. */
  mayAppend: boolean;
  take: (file: File, append: boolean) => Promise<string>;
}

export function DataImport({ action, mayAppend, take }: DataImportProps) {
  const [file, setFile] = useState<File | null>(null);
  const [preview, setPreview] = useState<Preview>({ columns: [], rows: [] });
  const [append, setAppend] = useState(true);
  const [said, setSaid] = useState<{ text: string; failed: boolean } | null>(null);
  const [busy, setBusy] = useState(false);

  const choose = async (chosen: File | null) => {
    setFile(chosen);
    setSaid(null);
    setPreview(chosen ? await previewOf(chosen) : { columns: [], rows: [] });
  };
  const send = async () => {
    if (!file) return;
    setBusy(true);
    try {
      setSaid({ text: await take(file, mayAppend && append), failed: false });
      setFile(null);
    } catch (error) {
      setSaid({ text: (error as Error).message, failed: true });
    }
    setBusy(false);
  };
  return (
    <div className="data-import">
      <label>
        A file of CSV, JSON or JSON lines{" "}
        <input
          type="file"
          accept=".csv,.json,.jsonl,.ndjson"
          onChange={(event) => void choose(event.target.files?.[0] ?? null)}
        />
      </label>
      {preview.columns.length > 0 && (
        <div className="diff">
          <table>
            <thead>
              <tr>
                {preview.columns.map((column) => (
                  <th key={column} scope="col">
                    {column}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {preview.rows.map((row, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the rows of one preview never move
                <tr key={at}>
                  {preview.columns.map((column) => (
                    <td key={column}>{String(row[column] ?? "")}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {mayAppend && (
        <label className="check">
          <input type="checkbox" checked={append} onChange={(event) => setAppend(event.target.checked)} />
          add to the entries that are there; else they are replaced
        </label>
      )}
      <p className="row">
        <button type="button" className="primary" disabled={!file || busy} onClick={() => void send()}>
          {busy ? "Sending…" : action}
        </button>
        {said && (
          <span className={said.failed ? "fault" : "hint"} role={said.failed ? "alert" : "status"}>
            {said.text}
          </span>
        )}
      </p>
    </div>
  );
}
