/**
 * Form that imports a file into a data source. Before the person sends the file, it shows the first rows, the delimiter and the column
 * types.
 */
import { useRef, useState } from "react";
import type { CsvCellType } from "../../../rules/csv-types.js";
import { resolveServiceUrl } from "../../service-address.js";
import { fetchWithSignInRetry } from "../accounts/session-renewal.js";
import { ApiError, asApiError, throwOffline } from "../shared/api-error.js";
import { clearChosenFile } from "../shared/clear-choice.js";
import { capitalize } from "../shared/format.js";
import { CELL_TYPE_LABELS, type ColumnTypes, type CsvPreview, PreviewTable, readPreview } from "./import-preview.js";

const DELIMITER_NAMES: readonly (readonly [string, string])[] = [
  [",", "commas"],
  [";", "semicolons"],
  ["\t", "tabs"],
  ["|", "vertical bars"],
];

export const getDelimiterName = (delimiter: string): string =>
  DELIMITER_NAMES.find(([character]) => character === delimiter)?.[1] ?? `"${delimiter}"`;

/** File to import, with the options that the person has chosen. */
export interface FileToImport {
  file: File;
  shouldAppend: boolean;
  /** Delimiter of a CSV file; null if the service should detect it. */
  delimiter: string | null;
  /** Types of the columns of a CSV file. */
  columnTypes: ColumnTypes;
}

export interface ImportResult {
  inserted: number;
  columns: string[];
  delimiter: string | null;
}

const throwFileChanged = (): never => {
  throw new ApiError("FILE_CHANGED", "The file was changed or removed after you had chosen it. Choose it again.");
};

/** Sends the file to the service. @throws ApiError with the service's message if the service rejects the file */
export async function importFile(appId: number, id: number, fileToImport: FileToImport): Promise<ImportResult> {
  // Reads one byte first, which fails if the file on the disk has changed since the person chose it. The request would fail
  // too, but with the same error as after a lost connection.
  await fileToImport.file.slice(0, 1).arrayBuffer().catch(throwFileChanged);
  const form = new FormData();
  form.append("file", fileToImport.file);
  const query = new URLSearchParams({ append: String(fileToImport.shouldAppend) });
  if (fileToImport.delimiter !== null) query.set("delimiter", fileToImport.delimiter);
  // The service treats columns without a type as text, so the type "text" is not sent.
  const types = Object.entries(fileToImport.columnTypes).filter(([, type]) => type !== "text");
  if (types.length > 0) query.set("types", JSON.stringify(Object.fromEntries(types)));
  const path = `/v1/apps/${appId}/data-sources/${id}/import?${query}`;
  const response = await fetchWithSignInRetry(resolveServiceUrl(path), { method: "POST", body: form });
  const body = (await response.json().catch(throwOffline)) as ImportResult & { status?: string; error?: string };
  if (response.ok) return body;
  const message = body.error ?? `the import failed: the service responded with HTTP status ${response.status}`;
  throw new ApiError(body.status ?? "INTERNAL_ERROR", message);
}

interface DelimiterFieldProps {
  preview: CsvPreview;
  chosenDelimiter: string | null;
  onChoose: (delimiter: string | null) => void;
}

function DelimiterField({ preview, chosenDelimiter, onChoose }: DelimiterFieldProps) {
  const detectLabel = chosenDelimiter === null ? `Detected: ${getDelimiterName(preview.delimiter)}` : "Detect";
  return (
    <label className="field">
      Cells are separated by
      <select value={chosenDelimiter ?? ""} onChange={(event) => onChoose(event.target.value || null)}>
        <option value="">{detectLabel}</option>
        {DELIMITER_NAMES.map(([character, name]) => (
          <option key={name} value={character}>
            {capitalize(name)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface SuggestedTypesProps {
  chosenTypes: ColumnTypes;
  suggestedTypes: ColumnTypes;
  applyTypes: (types: ColumnTypes) => void;
}

/** Suggests types for columns whose chosen type differs. A column is text until the person chooses another type, here or in the preview. */
function SuggestedTypes({ chosenTypes, suggestedTypes, applyTypes }: SuggestedTypesProps) {
  const otherTypes = Object.entries(suggestedTypes).filter(([column, type]) => chosenTypes[column] !== type);
  if (otherTypes.length === 0) return null;
  return (
    <p className="row">
      <button type="button" onClick={() => applyTypes({ ...chosenTypes, ...suggestedTypes })}>
        Use suggested types
      </button>
      <span className="hint">
        {otherTypes.map(([column, type]) => `${column}: ${CELL_TYPE_LABELS[type]}`).join(", ")}
      </span>
    </p>
  );
}

interface DataImportProps {
  buttonLabel: string;
  /** True if the data source exists already, so that the person can choose to keep its entries. */
  canAppend: boolean;
  /** Returns the types of the columns that the data source already has. */
  readTypes?: () => Promise<ColumnTypes>;
  /** Sends the file. The promise resolves to the message that the form then shows. */
  importFile: (fileToImport: FileToImport) => Promise<string>;
}

export function DataImport({ buttonLabel, canAppend, readTypes, importFile }: DataImportProps) {
  const [file, setFile] = useState<File | null>(null);
  const [delimiter, setDelimiter] = useState<string | null>(null);
  const [preview, setPreview] = useState<CsvPreview | null>(null);
  const [existingTypes, setExistingTypes] = useState<ColumnTypes>({});
  const [chosenTypes, setChosenTypes] = useState<ColumnTypes>({});
  const [appendsEntries, setAppendsEntries] = useState(true);
  const [outcome, setOutcome] = useState<{ text: string; failed: boolean } | null>(null);
  const [busy, setBusy] = useState(false);
  const [isReading, setReading] = useState(false);
  /** Number of times that the person has chosen a file or a delimiter. The form ignores a preview that arrives after a newer choice. */
  const latestChoice = useRef(0);

  const willAppend = canAppend && appendsEntries;
  const types: Record<string, CsvCellType> = {};
  const suggestedTypes: Record<string, CsvCellType> = {};
  for (const column of preview?.columns ?? []) {
    types[column] = chosenTypes[column] ?? "text";
    suggestedTypes[column] = (willAppend ? existingTypes[column] : undefined) ?? preview!.detectedTypes[column]!;
  }

  const chooseFile = async (newFile: File | null, separator: string | null) => {
    latestChoice.current += 1;
    const choiceNumber = latestChoice.current;
    setReading(true);
    if (newFile !== file) setPreview(null);
    setFile(newFile);
    setDelimiter(separator);
    setOutcome(null);
    setChosenTypes({});
    // If the existing entries cannot be read, the suggested types depend only on the file.
    const knownTypes = (newFile && (await readTypes?.().catch(() => null))) ?? {};
    // If the file cannot be parsed, the form shows no preview. The service reports the error when the person sends the file.
    const nextPreview = newFile && (await readPreview(newFile, separator).catch(() => null));
    if (choiceNumber !== latestChoice.current) return;
    setExistingTypes(knownTypes);
    setPreview(nextPreview);
    setReading(false);
  };
  const submitFile = async () => {
    if (!file) return;
    setBusy(true);
    try {
      setOutcome({
        text: await importFile({ file, shouldAppend: willAppend, delimiter, columnTypes: types }),
        failed: false,
      });
      setFile(null);
      setPreview(null);
    } catch (error) {
      setOutcome({ text: asApiError(error).message, failed: true });
    }
    setBusy(false);
  };
  return (
    <div className="data-import">
      <label className="field">
        A file of CSV, JSON or JSON lines
        <input
          type="file"
          accept=".csv,.json,.jsonl,.ndjson"
          disabled={busy}
          onClick={clearChosenFile}
          onChange={(event) => void chooseFile(event.target.files?.[0] ?? null, null)}
        />
      </label>
      {file && preview && (
        <DelimiterField
          {...{ preview }}
          chosenDelimiter={delimiter}
          onChoose={(separator) => void chooseFile(file, separator)}
        />
      )}
      {preview && preview.columns.length > 0 && (
        <>
          <PreviewTable
            {...{ preview, columnTypes: types }}
            chooseType={(column: string, type: CsvCellType) => setChosenTypes({ ...chosenTypes, [column]: type })}
          />
          <SuggestedTypes {...{ chosenTypes: types, suggestedTypes }} applyTypes={setChosenTypes} />
          <p className="hint">
            Text columns store each cell unchanged. A number column stores 00123 as 123 and 1.10 as 1.1. A date column
            stores text such as 2026-11-26 and takes times without a zone as UTC. In both, and in yes/no columns, a
            blank cell becomes null.
          </p>
        </>
      )}
      {canAppend && (
        <label className="check">
          <input
            type="checkbox"
            checked={appendsEntries}
            onChange={(event) => setAppendsEntries(event.target.checked)}
          />
          Keep existing entries and add these
        </label>
      )}
      <p className="row">
        <button
          type="button"
          className="primary"
          disabled={!file || busy || isReading}
          onClick={() => void submitFile()}
        >
          {busy ? "Sending…" : buttonLabel}
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
