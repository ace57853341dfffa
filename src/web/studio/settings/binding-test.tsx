/** Form that tests a secret binding. The service sends one request with the credential, and the form shows the response. */
import { type FormEvent, useState } from "react";
import { TestSecretBinding, type TestSecretBindingMutation } from "../documents.js";
import { type ApiClient, asApiError } from "../shared/api.js";
import { formatBytes, formatDuration } from "../shared/format.js";
import type { SecretBinding } from "../shared/model.js";

type BindingTestResult = TestSecretBindingMutation["trial"];

const TEST_METHODS = ["GET", "HEAD", "POST"];

function BindingTestOutcome({ result }: { result: BindingTestResult }) {
  const { status, durationMs, receivedBytes, body, code, error } = result;
  if (status === null) {
    return (
      <p className="fault" role="status">
        {error} <code>{code}</code>
      </p>
    );
  }
  return (
    <>
      <p className="row" role="status">
        <span className={status < 400 ? "state completed" : "state failed"}>{status}</span>
        <span className="hint">
          after {formatDuration(durationMs)}, {formatBytes(receivedBytes)}
        </span>
      </p>
      {body !== "" && <pre className="result">{body}</pre>}
    </>
  );
}

interface BindingTestFormProps {
  api: ApiClient;
  appId: number;
  binding: SecretBinding;
}

export function BindingTestForm({ api, appId, binding: { key, origin } }: BindingTestFormProps) {
  const [method, setMethod] = useState("GET");
  const [path, setPath] = useState("/");
  const [result, setResult] = useState<BindingTestResult | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setFault(null);
    setResult(null);
    try {
      setResult((await api.request(TestSecretBinding, { appId, data: { key, origin, method, path } })).trial);
    } catch (error) {
      setFault(asApiError(error).message);
    }
    setBusy(false);
  };
  return (
    <div className="binding-test">
      <form className="row" aria-label={`Request with ${key} to ${origin}`} onSubmit={(event) => void submit(event)}>
        <select aria-label="Method" value={method} onChange={(event) => setMethod(event.target.value)}>
          {TEST_METHODS.map((method) => (
            <option key={method}>{method}</option>
          ))}
        </select>
        <code>{origin}</code>
        <input
          className="mono grow"
          aria-label="Path"
          spellCheck={false}
          value={path}
          onChange={(event) => setPath(event.target.value)}
        />
        <button type="submit" className="primary" disabled={isBusy}>
          {isBusy ? "Sending…" : "Send"}
        </button>
      </form>
      <p className="hint">The service adds the credential. The request is in the app's audit log; it is no run.</p>
      <p className="fault" role="alert">
        {fault}
      </p>
      {result && <BindingTestOutcome result={result} />}
    </div>
  );
}
