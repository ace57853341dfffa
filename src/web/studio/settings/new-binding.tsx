/**
 * Form for a new secret binding: a credential that the service adds to requests to an origin. The person chooses the setting with the
 * credential, the origin, and the part of the request. Only the service validates the values.
 */
import type { FormEvent, HTMLProps } from "react";
import { capitalize } from "../shared/format.js";
import { useNewResourceForm } from "../shared/use-new-values.js";

export const CREDENTIAL_LOCATIONS: Record<string, string> = {
  header: "as a header",
  query: "as a query parameter",
  basic: "as basic credentials",
  "aws-sigv4": "by AWS Signature Version 4",
  oauth2: "as an OAuth 2 token",
};

const OAUTH_GRANTS = { client_credentials: "Client credentials", refresh_token: "Refresh token" };

const EMPTY_BINDING = {
  ...{ key: "", origin: "", in: "header", name: "", format: "", value: "", sealed: false },
  ...{ tokenUrl: "", clientId: "", scopes: "", grant: "client_credentials" },
};
type NewBindingDraft = typeof EMPTY_BINDING;

/** Label and placeholder of the additional field that a location of the credential needs, such as the header's name. */
const LOCATION_FIELDS: Record<string, [label: string, placeholder: string] | undefined> = {
  header: ["Name of the header", "Authorization"],
  query: ["Name of the parameter", "api_key"],
  basic: ["User, if the value is a password", ""],
  "aws-sigv4": ["Service and region", "s3/eu-west-1"],
};
const LOCATIONS_WITH_FORMAT = ["header", "query"];

const removeEmptyFields = (fields: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).filter(([, text]) => text.trim() !== ""));

/** Converts the form to the service's input. Leaves out empty fields, and fields that belong to another location than the chosen one. */
export function bindingToInput(binding: NewBindingDraft): object {
  const { key, origin, in: location, sealed, value, name, format, tokenUrl, clientId, scopes, grant } = binding;
  const nameInput = LOCATION_FIELDS[location] ? removeEmptyFields({ name }) : {};
  const formatInput = LOCATIONS_WITH_FORMAT.includes(location) ? removeEmptyFields({ format }) : {};
  const scopeList = scopes.split(/[\s,]/).filter((scope) => scope !== "");
  const oauthInput =
    location === "oauth2" ? { ...removeEmptyFields({ tokenUrl, clientId }), grant, scopes: scopeList } : {};
  return {
    key,
    origin,
    in: location,
    sealed,
    ...nameInput,
    ...formatInput,
    ...removeEmptyFields({ value }),
    ...oauthInput,
  };
}

interface NewBindingFormProps {
  isBusy: boolean;
  addBinding: (binding: object) => Promise<boolean>;
}

export function NewBindingForm({ isBusy, addBinding }: NewBindingFormProps) {
  const { values: binding, setValues: setBinding, clearSaved } = useNewResourceForm(EMPTY_BINDING);
  const changeBinding = (part: Partial<NewBindingDraft>) => setBinding({ ...binding, ...part });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (await addBinding(bindingToInput(binding))) clearSaved(binding);
  };
  const input = (
    field: Exclude<keyof NewBindingDraft, "sealed">,
    label: string,
    more: HTMLProps<HTMLInputElement> = {},
  ) => (
    <label>
      {label}
      <input
        name={field}
        autoComplete="off"
        spellCheck={false}
        value={binding[field]}
        onChange={(event) => changeBinding({ [field]: event.target.value })}
        {...more}
      />
    </label>
  );
  const location = binding.in;
  const [nameLabel, namePlaceholder] = LOCATION_FIELDS[location] ?? [];
  return (
    <form className="binding-form" aria-label="New binding" onSubmit={(event) => void submit(event)}>
      {input("key", "Key of the setting", { placeholder: "__stripe" })}
      {input("value", "New value", { type: "password", placeholder: "unchanged if empty" })}
      {input("origin", "Origin", { placeholder: "https://api.stripe.com" })}
      <label>
        Place in the request
        <select name="in" value={location} onChange={(event) => changeBinding({ in: event.target.value })}>
          {Object.entries(CREDENTIAL_LOCATIONS).map(([location, label]) => (
            <option key={location} value={location}>
              {capitalize(label)}
            </option>
          ))}
        </select>
      </label>
      {nameLabel !== undefined && input("name", nameLabel, { placeholder: namePlaceholder! })}
      {LOCATIONS_WITH_FORMAT.includes(location) &&
        input("format", "Format", {
          placeholder: location === "header" && binding.name === "" ? "Bearer {value}" : "{value}",
        })}
      {location === "oauth2" && (
        <>
          {input("tokenUrl", "URL of the token endpoint", { placeholder: "https://login.example.com/token" })}
          {input("clientId", "ID of the client")}
          <label>
            Grant
            <select value={binding.grant} onChange={(event) => changeBinding({ grant: event.target.value })}>
              {Object.entries(OAUTH_GRANTS).map(([grant, label]) => (
                <option key={grant} value={grant}>
                  {label}
                </option>
              ))}
            </select>
          </label>
          {input("scopes", "Scopes", { placeholder: "read write" })}
        </>
      )}
      <p className="row end">
        <label className="check grow">
          <input
            type="checkbox"
            checked={binding.sealed}
            onChange={(event) => changeBinding({ sealed: event.target.checked })}
          />
          Seal it: no code receives the value, and no other origin can get it
        </label>
        <button type="submit" className="primary" disabled={isBusy}>
          Add the binding
        </button>
      </p>
    </form>
  );
}
