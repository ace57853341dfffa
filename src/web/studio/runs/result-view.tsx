/** Shows the result of a run: its first characters as text, and the complete result as a file to download. */
import { CopyButton } from "../shared/copy-button.js";
import { formatJson } from "../shared/format.js";

/** Maximum number of characters of the result that the page shows. Browsers need seconds for the layout of longer texts. */
const MAX_SHOWN_CHARACTERS = 20_000;

function downloadText(text: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url));
}

const formatTextSize = ({ length }: string) =>
  length < 1024 * 1024 ? `${Math.round(length / 1024)} KB` : `${(length / 1024 / 1024).toFixed(1)} MB`;

export function ResultView({ value, name }: { value: unknown; name: string }) {
  const text = formatJson(value);
  const isCut = text.length > MAX_SHOWN_CHARACTERS;
  return (
    <div className="result-view">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by the keyboard */}
      <pre className="result" tabIndex={0}>
        {isCut ? `${text.slice(0, MAX_SHOWN_CHARACTERS)} …` : text}
      </pre>
      {value !== undefined && (
        <p className="row">
          {isCut && <span className="hint">The beginning of {formatTextSize(text)}.</span>}
          <button type="button" className="link" onClick={() => downloadText(text, name)}>
            Download
          </button>
          <CopyButton className="link" getText={() => text} />
        </p>
      )}
    </div>
  );
}
