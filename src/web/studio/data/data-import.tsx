/** Import of a file into a data source: shows the first rows and the delimiter before the file is sent. */

import { useState } from "react";
import { CsvParser, detectDelimiter, SAMPLE_CHARACTERS } from "../../../rules/csv.js";
import { serviceAddress } from "../../service-address.js";
import { fetchSignedIn } from "../accounts/renewal.js";

/** Bytes that hold the characters from which the service detects the delimiter. */
const PREVIEW_BYTES = 4 * SAMPLE_CHARACTERS;
const PREVIEW_ROWS = 5;

const DELIMITERS: readonly (readonly [string, string])[] = [
  [",", "commas"],
  [";", "semicolons"],
  ["\t", "tabs"],
  ["|", "vertical bars"],
];

export const delimiterName = (delimiter: string): string =>
  DELIMITERS.find(([character]) => character === delimiter)?.[1] ?? `"${delimiter}"`;

/** A file with what the person chose for it. */
export interface ChosenFile {
  file: File;
  append: boolean;
  /** Of a CSV; null: the service detects it. */
  delimiter: string | null;
}

interface Preview {
  columns: string[];
  rows: string[][];
  delimiter: string;
}

/** The first rows of a CSV as the service reads them; null for other files. */
async function previewOf({ file, delimiter }: Pick<ChosenFile, "file" | "delimiter">): Promise<Preview | null> {
  if (!/\.csv$/i.test(file.name) && file.type !== "text/csv") return null;
  const text = (await file.slice(0, PREVIEW_BYTES).text()).slice(0, SAMPLE_CHARACTERS);
  const isWhole = file.size <= PREVIEW_BYTES && text.length < SAMPLE_CHARACTERS;
  const detected = detectDelimiter(text, isWhole);
  const used = delimiter ?? detected.delimiter;
  const parser = new CsvParser(used);
  try {
    const found = parser.write(text.slice(detected.skip));
    if (isWhole || found.length === 0) found.push(...parser.end());
    const [columns = [], ...rows] = found;
    return { columns, rows: rows.slice(0, PREVIEW_ROWS), delimiter: used };
  } catch {
    // The service names the faulty row when the file is sent.
    return { columns: [], rows: [], delimiter: used };
  }
}

export interface ImportedFile {
  inserted: number;
  columns: string[];
  delimiter: string | null;
}

/** @throws Error with the service's message */
export async function sendFile(appId: number, id: number, chosen: ChosenFile): Promise<ImportedFile> {
  const form = new FormData();
  form.append("file", chosen.file);
  const query = new URLSearchParams({ append: String(chosen.append) });
  if (chosen.delimiter !== null) query.set("delimiter", chosen.delimiter);
  const path = `/v1/apps/${appId}/data-sources/${id}/import?${query}`;
  const response = await fetchSignedIn(serviceAddress(path), { method: "POST", body: form });
  const body = (await response.json()) as ImportedFile & { error?: string };
  if (!response.ok) throw new Error(body.error ?? `the service answered ${response.status}`);
  return body;
}

function PreviewTable({ columns, rows }: Preview) {
  return (
    <div className="diff">
      <table>
        <thead>
          <tr>
            {columns.map((column, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: names may repeat until the service refuses them
              <th key={at} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the rows of one preview never move
            <tr key={at}>
              {columns.map((_, cell) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: nor do its cells
                <td key={cell}>{row[cell] ?? ""}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface DelimiterFieldProps {
  preview: Preview;
  chosen: string | null;
  choose: (delimiter: string | null) => void;
}

function DelimiterField({ preview, chosen, choose }: DelimiterFieldProps) {
  const detected = chosen === null ? `detected: ${delimiterName(preview.delimiter)}` : "detect";
  return (
    <label>
      Cells are separated by{" "}
      <select value={chosen ?? ""} onChange={(event) => choose(event.target.value || null)}>
        <option value="">{detected}</option>
        {DELIMITERS.map(([character, name]) => (
          <option key={name} value={character}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

interface DataImportProps {
  /** Text of the button. */
  action: string;
  /** True if existing entries can stay. */
  mayAppend: boolean;
  /** Sends the file; resolves to the text that is shown afterwards. */
  take: (chosen: ChosenFile) => Promise<string>;
}

export function DataImport({ action, mayAppend, take }: DataImportProps) {
  const [file, setFile] = useState<File | null>(null);
  const [delimiter, setDelimiter] = useState<string | null>(null);
  const [preview, setPreview] = useState<Preview | null>(null);
  const [append, setAppend] = useState(true);
  const [outcome, setOutcome] = useState<{ text: string; failed: boolean } | null>(null);
  const [busy, setBusy] = useState(false);

  const choose = async (chosen: File | null, separator: string | null) => {
    setFile(chosen);
    setDelimiter(separator);
    setOutcome(null);
    setPreview(chosen && (await previewOf({ file: chosen, delimiter: separator })));
  };
  const send = async () => {
    if (!file) return;
    setBusy(true);
    try {
      setOutcome({ text: await take({ file, append: mayAppend && append, delimiter }), failed: false });
      setFile(null);
    } catch (error) {
      setOutcome({ text: (error as Error).message, failed: true });
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
          onChange={(event) => void choose(event.target.files?.[0] ?? null, null)}
        />
      </label>
      {file && preview && (
        <DelimiterField {...{ preview }} chosen={delimiter} choose={(next) => void choose(file, next)} />
      )}
      {preview && preview.columns.length > 0 && <PreviewTable {...preview} />}
      {mayAppend && (
        <label className="check">
          <input type="checkbox" checked={append} onChange={(event) => setAppend(event.target.checked)} />
          keep existing entries and add these
        </label>
      )}
      <p className="row">
        <button type="button" className="primary" disabled={!file || busy} onClick={() => void send()}>
          {busy ? "Sending…" : action}
        </button>
        {outcome && (
          <span className={outcome.failed ? "fault" : "hint"} role={outcome.failed ? "alert" : "status"}>
            {outcome.text}
          </span>
        )}
      </p>
    </div>
  );
}
