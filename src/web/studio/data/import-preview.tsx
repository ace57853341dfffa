/** Preview of a CSV file: its first rows as the service would read them. For each column, the person can choose a type. */
import { CsvParser, DELIMITER_SAMPLE_MAX_CHARACTERS, detectDelimiter } from "../../../rules/csv.js";
import {
  CSV_CELL_TYPE_DESCRIPTIONS,
  CSV_CELL_TYPES,
  type CsvCellType,
  convertCsvCell,
  detectCsvCellType,
} from "../../../rules/csv-types.js";

/**
 * Number of bytes to read from the start of the file. If the file has more bytes, these contain at least
 * DELIMITER_SAMPLE_MAX_CHARACTERS characters. The service looks for the delimiter only in that part.
 */
const PREVIEW_BYTES = 4 * DELIMITER_SAMPLE_MAX_CHARACTERS;
const PREVIEW_MAX_ROWS = 5;

export const CELL_TYPE_LABELS: Readonly<Record<CsvCellType, string>> = {
  text: "Text",
  number: "Number",
  boolean: "Yes/no",
  date: "Date",
};

export type ColumnTypes = Readonly<Record<string, CsvCellType>>;

export interface CsvPreview {
  columns: string[];
  rows: string[][];
  delimiter: string;
  /** Suggested type of each column, detected from the first rows of the file. */
  detectedTypes: ColumnTypes;
}

/** Reads the first rows of a CSV file. Returns null for a file of another format. @param delimiter null to detect the delimiter */
export async function readPreview(file: File, delimiter: string | null): Promise<CsvPreview | null> {
  if (!/\.csv$/i.test(file.name) && file.type !== "text/csv") return null;
  const text = (await file.slice(0, PREVIEW_BYTES).text()).slice(0, DELIMITER_SAMPLE_MAX_CHARACTERS);
  const isWholeFile = file.size <= PREVIEW_BYTES && text.length < DELIMITER_SAMPLE_MAX_CHARACTERS;
  const format = detectDelimiter(text, isWholeFile);
  const usedDelimiter = delimiter ?? format.delimiter;
  const parser = new CsvParser(usedDelimiter);
  try {
    const parsedRows = parser.write(text.slice(format.skippedCharacters));
    if (isWholeFile || parsedRows.length === 0) parsedRows.push(...parser.finish());
    const [columns = [], ...rows] = parsedRows;
    const columnTypePairs = columns.map(
      (column, columnIndex) => [column, detectCsvCellType(rows.map((row) => row[columnIndex] ?? ""))] as const,
    );
    return {
      columns,
      rows: rows.slice(0, PREVIEW_MAX_ROWS),
      delimiter: usedDelimiter,
      detectedTypes: Object.fromEntries(columnTypePairs),
    };
  } catch {
    // The file contains an invalid row. Shows no rows: the service reports the invalid row when the person sends the file.
    return { columns: [], rows: [], delimiter: usedDelimiter, detectedTypes: {} };
  }
}

function PreviewCell({ cell, type }: { cell: string; type: CsvCellType }) {
  const isWrong = convertCsvCell(cell, type) === undefined;
  return (
    <td className={isWrong ? "fault" : ""} title={isWrong ? `Not ${CSV_CELL_TYPE_DESCRIPTIONS[type]}` : undefined}>
      {cell}
    </td>
  );
}

interface PreviewTableProps {
  preview: CsvPreview;
  columnTypes: ColumnTypes;
  chooseType: (column: string, type: CsvCellType) => void;
}

export function PreviewTable({ preview: { columns, rows }, columnTypes, chooseType }: PreviewTableProps) {
  return (
    <div className="diff">
      <table>
        <thead>
          <tr>
            {columns.map((column, columnIndex) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: names of columns can repeat until the service rejects the file
              <th key={columnIndex} scope="col">
                {column}
                <select
                  aria-label={`Type of ${column}`}
                  value={columnTypes[column]}
                  onChange={(event) => chooseType(column, event.target.value as CsvCellType)}
                >
                  {CSV_CELL_TYPES.map((type) => (
                    <option key={type} value={type}>
                      {CELL_TYPE_LABELS[type]}
                    </option>
                  ))}
                </select>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, rowIndex) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the rows of a preview never change their order
            <tr key={rowIndex}>
              {columns.map((column, cell) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the cells of a row never change their order
                <PreviewCell key={cell} cell={row[cell] ?? ""} type={columnTypes[column]!} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Returns the type of each column: the type of its first text, number or boolean. Leaves out columns that have none of these. */
export function detectEntryTypes(entries: readonly { data: unknown }[]): ColumnTypes {
  const types: Record<string, CsvCellType> = {};
  for (const { data } of entries) {
    for (const [column, value] of Object.entries(data as object)) {
      if (typeof value === "string") types[column] ??= "text";
      else if (typeof value === "number" || typeof value === "boolean") types[column] ??= typeof value as CsvCellType;
    }
  }
  return types;
}
