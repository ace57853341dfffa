/** Form fields of an HTTP trigger: its responses, and the credential that it requires. */
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
  change: (part: Partial<HttpDraft>) => void;
}

interface TextProps {
  label: string;
  value: string;
  placeholder: string;
  onText: (text: string) => void;
}

function TextField({ label, value, placeholder, onText }: TextProps) {
  return (
    <input
      aria-label={label}
      className="mono"
      spellCheck={false}
      placeholder={placeholder}
      value={value}
      onChange={(event) => onText(event.target.value)}
    />
  );
}

interface ChoiceProps<Value extends string> {
  label: string;
  value: string;
  options: readonly (readonly [value: Value, label: string])[];
  choose: (value: Value) => void;
}

function ChoiceField<Value extends string>({ label, value, options, choose }: ChoiceProps<Value>) {
  return (
    <select aria-label={label} value={value} onChange={(event) => choose(event.target.value as Value)}>
      {options.map(([option, text]) => (
        <option key={option} value={option}>
          {text}
        </option>
      ))}
    </select>
  );
}

function HmacFields({ http, change }: HttpFieldsProps) {
  return (
    <>
      <TextField
        label="Header with the signature"
        placeholder="X-Signature"
        value={http.header}
        onText={(header) => change({ header })}
      />
      <div className="row">
        <ChoiceField
          label="Digest"
          value={http.algorithm}
          options={["", "sha256", "sha1", "sha512"].map((algorithm) => [algorithm, algorithm || "SHA-256"] as const)}
          choose={(algorithm) => change({ algorithm })}
        />
        <ChoiceField
          label="Text form of the signature"
          value={http.encoding}
          options={["", "hex", "base64"].map((encoding) => [encoding, encoding || "hexadecimal"] as const)}
          choose={(encoding) => change({ encoding })}
        />
      </div>
      <TextField
        label="Text before the signature"
        placeholder="prefix, as sha256="
        value={http.prefix}
        onText={(prefix) => change({ prefix })}
      />
      <TextField
        label="Header with the signed time"
        placeholder="header with the time, if one is signed"
        value={http.timestampHeader}
        onText={(timestampHeader) => change({ timestampHeader })}
      />
    </>
  );
}

function CredentialFields({ http, change }: HttpFieldsProps) {
  const { authType, scheme, setting, toleranceSeconds } = http;
  const isSignature = authType === "signature";
  return (
    <>
      <ChoiceField label="Proof" value={authType} options={AUTH_TYPES} choose={(type) => change({ authType: type })} />
      {isSignature && (
        <ChoiceField
          label="Scheme of the signature"
          value={scheme}
          options={SIGNATURE_SCHEMES}
          choose={(next) => change({ scheme: next, toleranceSeconds: "" })}
        />
      )}
      {(isSignature || authType === "basic") && (
        <TextField
          label="Setting with the secret"
          placeholder={authType === "basic" ? "__login, holds user:password" : "__stripe"}
          value={setting}
          onText={(text) => change({ setting: text })}
        />
      )}
      {isSignature && scheme === "hmac" && <HmacFields http={http} change={change} />}
      {isSignature && (
        <TextField
          label="Tolerance in seconds"
          placeholder="300 seconds from the signed time"
          value={toleranceSeconds}
          onText={(text) => change({ toleranceSeconds: text })}
        />
      )}
    </>
  );
}

export function HttpFields({ http, change }: HttpFieldsProps) {
  return (
    <>
      <div className="row">
        <ChoiceField
          label="Method"
          value={http.method}
          options={["", ...HTTP_METHODS].map((method) => [method, method || "all methods"] as const)}
          choose={(method) => change({ method })}
        />
        <TextField label="Path" placeholder="orders/:id" value={http.path} onText={(path) => change({ path })} />
      </div>
      <CredentialFields http={http} change={change} />
      <ChoiceField
        label="Answer"
        value={http.respond}
        options={[
          ["", "Answers with the result"],
          ["immediately", "Answers at once, with 202"],
        ]}
        choose={(respond) => change({ respond })}
      />
      <TextField
        label="Origins of pages that may read the answer"
        placeholder="pages that may read it: https://shop.example"
        value={http.origins}
        onText={(origins) => change({ origins })}
      />
      <TextField
        label="Header with the ID of the event"
        placeholder="header with the event's ID, to run each event once"
        value={http.idempotencyHeader}
        onText={(idempotencyHeader) => change({ idempotencyHeader })}
      />
    </>
  );
}
