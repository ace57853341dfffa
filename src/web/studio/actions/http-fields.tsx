/** Form fields of an HTTP trigger: its method and path, the credential that a request needs, and how the trigger responds. */
import type { HttpAuth, HttpMethod, SignatureScheme } from "../../../data/action-types.js";
import type { HttpDraft } from "./http-draft.js";

const HTTP_METHODS: readonly HttpMethod[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

const AUTH_TYPES: [type: HttpAuth["type"], label: string][] = [
  ["secret", "Secret in the address"],
  ["signature", "Signature of a webhook"],
  ["bearer", "API token of this app"],
  ["basic", "User name and password"],
  ["none", "None: anyone can call"],
];

const SIGNATURE_SCHEMES: [scheme: SignatureScheme, label: string][] = [
  ["standard-webhooks", "Standard Webhooks"],
  ["stripe", "Stripe"],
  ["github", "GitHub"],
  ["slack", "Slack"],
  ["shopify", "Shopify"],
  ["twilio", "Twilio"],
  ["sendgrid", "SendGrid"],
  ["hmac", "HMAC in a header"],
];

interface HttpFieldsProps {
  http: HttpDraft;
  changeHttp: (part: Partial<HttpDraft>) => void;
}

interface TextFieldProps {
  label: string;
  value: string;
  placeholder: string;
  onChange: (text: string) => void;
}

function TextField({ label, value, placeholder, onChange }: TextFieldProps) {
  return (
    <label className="http-field">
      {label}
      <input
        aria-label={label}
        className="mono"
        spellCheck={false}
        placeholder={placeholder}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}

interface ChoiceFieldProps<Value extends string> {
  label: string;
  value: string;
  options: readonly (readonly [value: Value, label: string])[];
  onChoose: (value: Value) => void;
}

function ChoiceField<Value extends string>({ label, value, options, onChoose }: ChoiceFieldProps<Value>) {
  return (
    <label className="http-field">
      {label}
      <select aria-label={label} value={value} onChange={(event) => onChoose(event.target.value as Value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

function HmacFields({ http, changeHttp }: HttpFieldsProps) {
  return (
    <>
      <TextField
        label="Header with the signature"
        placeholder="X-Signature"
        value={http.header}
        onChange={(header) => changeHttp({ header })}
      />
      <div className="row">
        <ChoiceField
          label="Digest"
          value={http.algorithm}
          options={["", "sha256", "sha1", "sha512"].map((algorithm) => [algorithm, algorithm || "SHA-256"] as const)}
          onChoose={(algorithm) => changeHttp({ algorithm })}
        />
        <ChoiceField
          label="Text form of the signature"
          value={http.encoding}
          options={["", "hex", "base64"].map((encoding) => [encoding, encoding || "hexadecimal"] as const)}
          onChoose={(encoding) => changeHttp({ encoding })}
        />
      </div>
      <TextField
        label="Text before the signature"
        placeholder="sha256="
        value={http.prefix}
        onChange={(prefix) => changeHttp({ prefix })}
      />
      <TextField
        label="Header with the signed time"
        placeholder="none"
        value={http.timestampHeader}
        onChange={(timestampHeader) => changeHttp({ timestampHeader })}
      />
    </>
  );
}

function CredentialFields({ http, changeHttp }: HttpFieldsProps) {
  const { authType, scheme, setting, toleranceSeconds } = http;
  const isSignature = authType === "signature";
  return (
    <>
      <ChoiceField
        label="Credential of the caller"
        value={authType}
        options={AUTH_TYPES}
        onChoose={(type) => changeHttp({ authType: type })}
      />
      {isSignature && (
        <ChoiceField
          label="Scheme of the signature"
          value={scheme}
          options={SIGNATURE_SCHEMES}
          onChoose={(next) => changeHttp({ scheme: next, toleranceSeconds: "" })}
        />
      )}
      {(isSignature || authType === "basic") && (
        <TextField
          label="Setting with the secret"
          placeholder={authType === "basic" ? "__login, as user:password" : "__stripe"}
          value={setting}
          onChange={(text) => changeHttp({ setting: text })}
        />
      )}
      {isSignature && scheme === "hmac" && <HmacFields http={http} changeHttp={changeHttp} />}
      {isSignature && (
        <TextField
          label="Maximum age of the signature, in seconds"
          placeholder="300"
          value={toleranceSeconds}
          onChange={(text) => changeHttp({ toleranceSeconds: text })}
        />
      )}
    </>
  );
}

export function HttpFields({ http, changeHttp }: HttpFieldsProps) {
  return (
    <>
      <div className="row">
        <ChoiceField
          label="Method"
          value={http.method}
          options={["", ...HTTP_METHODS].map((method) => [method, method || "All methods"] as const)}
          onChoose={(method) => changeHttp({ method })}
        />
        <TextField label="Path" placeholder="orders/:id" value={http.path} onChange={(path) => changeHttp({ path })} />
      </div>
      <CredentialFields http={http} changeHttp={changeHttp} />
      <ChoiceField
        label="Response"
        value={http.respond}
        options={[
          ["", "The result of the run"],
          ["immediately", "202 at once, before the run ends"],
        ]}
        onChoose={(respond) => changeHttp({ respond })}
      />
      <TextField
        label="Origins of pages that may read the response"
        placeholder="https://shop.example"
        value={http.origins}
        onChange={(origins) => changeHttp({ origins })}
      />
      <TextField
        label="Header with the event's ID, to run each event once"
        placeholder="none"
        value={http.idempotencyHeader}
        onChange={(idempotencyHeader) => changeHttp({ idempotencyHeader })}
      />
    </>
  );
}
