/** Form fields of an HTTP trigger: its responses, and the credential that it requires. */
import type { HttpAuth, HttpMethod, SignatureScheme } from "../../../data/action-types.js";
import type { HttpDraft } from "./http-draft.js";

const METHODS: readonly HttpMethod[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

const AUTHS: [type: HttpAuth["type"], label: string][] = [
  ["secret", "Secret in the address"],
  ["signature", "Signature of a webhook"],
  ["bearer", "API token of this app"],
  ["basic", "User name and password"],
  ["none", "None: anyone can call"],
];

const SCHEMES: [scheme: SignatureScheme, label: string][] = [
  ["standard-webhooks", "Standard Webhooks"],
  ["stripe", "Stripe"],
  ["github", "GitHub"],
  ["slack", "Slack"],
  ["shopify", "Shopify"],
  ["twilio", "Twilio"],
  ["sendgrid", "SendGrid"],
  ["hmac", "HMAC in a header"],
];

interface Props {
  http: HttpDraft;
  change: (part: Partial<HttpDraft>) => void;
}

interface TextProps {
  label: string;
  value: string;
  placeholder: string;
  onText: (text: string) => void;
}

function Text({ label, value, placeholder, onText }: TextProps) {
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

function Choice<Value extends string>({ label, value, options, choose }: ChoiceProps<Value>) {
  return (
    <select aria-label={label} value={value} onChange={(event) => choose(event.target.value as Value)}>
      {options.map(([one, text]) => (
        <option key={one} value={one}>
          {text}
        </option>
      ))}
    </select>
  );
}

function HmacFields({ http, change }: Props) {
  return (
    <>
      <Text
        label="Header with the signature"
        placeholder="X-Signature"
        value={http.header}
        onText={(header) => change({ header })}
      />
      <div className="row">
        <Choice
          label="Digest"
          value={http.algorithm}
          options={["", "sha256", "sha1", "sha512"].map((one) => [one, one || "SHA-256"] as const)}
          choose={(algorithm) => change({ algorithm })}
        />
        <Choice
          label="Text form of the signature"
          value={http.encoding}
          options={["", "hex", "base64"].map((one) => [one, one || "hexadecimal"] as const)}
          choose={(encoding) => change({ encoding })}
        />
      </div>
      <Text
        label="Text before the signature"
        placeholder="prefix, as sha256="
        value={http.prefix}
        onText={(prefix) => change({ prefix })}
      />
      <Text
        label="Header with the signed time"
        placeholder="header with the time, if one is signed"
        value={http.timestampHeader}
        onText={(timestampHeader) => change({ timestampHeader })}
      />
    </>
  );
}

function ProofFields({ http, change }: Props) {
  const { authType, scheme, setting, toleranceSeconds } = http;
  const isSigned = authType === "signature";
  return (
    <>
      <Choice label="Proof" value={authType} options={AUTHS} choose={(type) => change({ authType: type })} />
      {isSigned && (
        <Choice
          label="Scheme of the signature"
          value={scheme}
          options={SCHEMES}
          choose={(next) => change({ scheme: next, toleranceSeconds: "" })}
        />
      )}
      {(isSigned || authType === "basic") && (
        <Text
          label="Setting with the secret"
          placeholder={authType === "basic" ? "__login, holds user:password" : "__stripe"}
          value={setting}
          onText={(text) => change({ setting: text })}
        />
      )}
      {isSigned && scheme === "hmac" && <HmacFields http={http} change={change} />}
      {isSigned && (
        <Text
          label="Tolerance in seconds"
          placeholder="300 seconds from the signed time"
          value={toleranceSeconds}
          onText={(text) => change({ toleranceSeconds: text })}
        />
      )}
    </>
  );
}

export function HttpFields({ http, change }: Props) {
  return (
    <>
      <div className="row">
        <Choice
          label="Method"
          value={http.method}
          options={["", ...METHODS].map((one) => [one, one || "all methods"] as const)}
          choose={(method) => change({ method })}
        />
        <Text label="Path" placeholder="orders/:id" value={http.path} onText={(path) => change({ path })} />
      </div>
      <ProofFields http={http} change={change} />
      <Choice
        label="Answer"
        value={http.respond}
        options={[
          ["", "Answers with the result"],
          ["immediately", "Answers at once, with 202"],
        ]}
        choose={(respond) => change({ respond })}
      />
      <Text
        label="Origins of pages that may read the answer"
        placeholder="pages that may read it: https://shop.example"
        value={http.origins}
        onText={(origins) => change({ origins })}
      />
      <Text
        label="Header with the ID of the event"
        placeholder="header with the event's ID, to run each event once"
        value={http.idempotencyHeader}
        onText={(idempotencyHeader) => change({ idempotencyHeader })}
      />
    </>
  );
}
