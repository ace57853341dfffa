/**
 * Reads the OpenID providers from environment variables. The variables of the first provider begin with OIDC_, those of further providers
 * with OIDC_<NAME>_.
 */
import { describeRejectedValue } from "./values.js";

export interface OpenIdProvider {
  /** ID of the provider in URL paths: `oidc`, or NAME in lower case for the variables OIDC_<NAME>_…. */
  id: string;
  /** Text on the provider's button on the sign-in page. */
  name: string;
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** True if the first sign-in of an unknown person creates an account. */
  autoCreate: boolean;
  /** Name of the claim (field of the ID token) that lists a person's groups. */
  roleClaim: string;
  /** Roles by group of the provider. If empty, people get no roles from the provider. */
  roles: ReadonlyMap<string, string>;
  /** Name of the claim that selects a person's organization; null if the domain of the verified e-mail address selects it. */
  organizationClaim: string | null;
  /** IDs of organizations, by the value of `organizationClaim` or by domain. If empty, everyone belongs to the first organization. */
  organizations: ReadonlyMap<string, number>;
}

type Environment = Record<string, string | undefined>;

/** Reports an invalid variable. `expected` completes the sentence "NAME must be …". */
type ReportFault = (name: string, expected: string) => void;

/** Rows of the reference page for the OpenID variables. */
export const OPEN_ID_VARIABLE_DESCRIPTIONS: readonly [names: string, initial: string, meaning: string][] = [
  [
    "`OIDC_ISSUER`, `OIDC_CLIENT_ID`, `OIDC_CLIENT_SECRET`",
    "unset",
    "an OpenID provider at which people sign in; more of them as `OIDC_<NAME>_ISSUER` and so on: [people](../operate/people.md#sign-in-at-an-openid-provider)",
  ],
  ["`OIDC_NAME`", "`OpenID`", "name on the provider's button"],
  ["`OIDC_AUTO_CREATE`", "`0`", "`1`: the first sign-in of an unknown person creates an account"],
  ["`OIDC_ROLES`", "unset", "roles by group, `group=role` separated by commas"],
  ["`OIDC_ROLE_CLAIM`", "`groups`", "claim that lists a person's groups"],
  ["`OIDC_ORGANIZATIONS`", "unset", "IDs of organizations by value of the claim, `value=ID` separated by commas"],
  [
    "`OIDC_ORGANIZATION_CLAIM`",
    "unset",
    "claim that selects the organization; unset: the domain of a verified e-mail address",
  ],
];

const ISSUER_VARIABLE_PATTERN = /^OIDC_(?:([A-Z0-9]+(?:_[A-Z0-9]+)*)_)?ISSUER$/;
const CLIENT_VARIABLE_PATTERN = /^(OIDC_(?:([A-Z0-9]+(?:_[A-Z0-9]+)*)_)?)CLIENT_(?:ID|SECRET)$/;
/** Words that cannot be a provider's NAME. For example, OIDC_CLIENT_ID could also be the variable ID of a provider CLIENT. */
const RESERVED_PROVIDER_NAMES = ["CLIENT", "ROLE", "AUTO", "ORGANIZATION"];
const ROLE_NAMES = ["owner", "admin", "editor", "operator", "reader"];
const LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"];
const PAIRS_MAX = 200;

/** Parses a list of pairs such as `a=b,c=d`. Returns null for an invalid list, and for more than PAIRS_MAX pairs. */
function parsePairs(text: string | null): Map<string, string> | null {
  const parts = (text ?? "").split(",").map((part) => part.trim());
  if (parts.join("") === "") return new Map();
  const pairs = parts.map((part) => {
    const separatorIndex = part.lastIndexOf("=");
    return [part.slice(0, Math.max(separatorIndex, 0)).trim(), part.slice(separatorIndex + 1).trim()] as const;
  });
  const isValid = pairs.length <= PAIRS_MAX && pairs.every(([key, value]) => key !== "" && value !== "");
  return isValid ? new Map(pairs) : null;
}

function isIssuer(text: string, isPrivateAllowed: boolean): boolean {
  const url = URL.parse(text);
  if (url === null || url.username || url.password || url.search || url.hash) return false;
  return (
    url.protocol === "https:" ||
    (url.protocol === "http:" && (isPrivateAllowed || LOOPBACK_HOSTS.includes(url.hostname)))
  );
}

function readProvider(env: Environment, name: string | undefined, reportFault: ReportFault): OpenIdProvider {
  const prefix = name === undefined ? "OIDC_" : `OIDC_${name}_`;
  const readText = (key: string) => env[prefix + key]?.trim() || null;
  const reportRejectedValue = (key: string, expected: string) =>
    reportFault(prefix + key, `${expected} (got ${describeRejectedValue(readText(key) ?? "", { isSecret: false })})`);
  const readRequiredText = (key: string): string => {
    const value = readText(key);
    if (value === null) reportFault(prefix + key, `set, because ${prefix}ISSUER is set`);
    return value ?? "";
  };
  const issuer = readText("ISSUER") ?? "";
  if (!isIssuer(issuer, env["ALLOW_PRIVATE_NETWORK"]?.trim() === "1")) {
    reportRejectedValue("ISSUER", "the https:// address of an OpenID provider, without user name, query and fragment");
  }
  const autoCreate = readText("AUTO_CREATE") ?? "0";
  if (autoCreate !== "0" && autoCreate !== "1") reportRejectedValue("AUTO_CREATE", "0 or 1");
  const roles = parsePairs(readText("ROLES"));
  if (!roles || ![...roles.values()].every((role) => ROLE_NAMES.includes(role))) {
    reportRejectedValue(
      "ROLES",
      `at most ${PAIRS_MAX} pairs of group=role separated by commas, each role one of ${ROLE_NAMES.join(", ")}`,
    );
  }
  const organizations = parsePairs(readText("ORGANIZATIONS"));
  if (!organizations || ![...organizations.values()].every((id) => /^[1-9]\d{0,14}$/.test(id))) {
    reportRejectedValue(
      "ORGANIZATIONS",
      `at most ${PAIRS_MAX} pairs of value=ID separated by commas, where ID is the ID of an organization`,
    );
  }
  return {
    id: (name ?? "oidc").toLowerCase(),
    name: readText("NAME") ?? (name === undefined ? "OpenID" : name.charAt(0) + name.slice(1).toLowerCase()),
    issuer,
    clientId: readRequiredText("CLIENT_ID"),
    clientSecret: readRequiredText("CLIENT_SECRET"),
    autoCreate: autoCreate === "1",
    roleClaim: readText("ROLE_CLAIM") ?? "groups",
    roles: roles ?? new Map(),
    organizationClaim: readText("ORGANIZATION_CLAIM"),
    organizations: new Map([...(organizations ?? [])].map(([value, id]) => [value, Number(id)])),
  };
}

/** Reads all OpenID providers. The provider whose variables have no NAME is the first. */
export function readOpenIdProviders(env: Environment, reportFault: ReportFault): OpenIdProvider[] {
  const names = Object.keys(env)
    .filter((key) => env[key]?.trim())
    .flatMap((key) => {
      const issuerMatch = ISSUER_VARIABLE_PATTERN.exec(key);
      return issuerMatch ? [issuerMatch[1]] : [];
    });
  for (const key of Object.keys(env)) {
    const clientMatch = CLIENT_VARIABLE_PATTERN.exec(key);
    if (!clientMatch || !env[key]?.trim() || names.includes(clientMatch[2])) continue;
    reportFault(`${clientMatch[1]}ISSUER`, `set, because ${key} is set`);
  }
  for (const name of names) {
    if (name !== undefined && (RESERVED_PROVIDER_NAMES.includes(name) || name === "OIDC"))
      reportFault(`OIDC_${name}_ISSUER`, "renamed: this name is reserved");
  }
  const hasUnnamedProvider = names.includes(undefined);
  const unnamedProvider = readProvider(env, undefined, hasUnnamedProvider ? reportFault : () => undefined);
  const providerNames = names.filter((name) => name !== undefined).sort();
  return [
    ...(hasUnnamedProvider ? [unnamedProvider] : []),
    ...providerNames.map((name) => readProvider(env, name, reportFault)),
  ];
}
