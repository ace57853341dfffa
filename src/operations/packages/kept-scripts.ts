/**
 * Stores the scripts of dependencies in the database, by the hash of their content. Deletes scripts that neither an action nor an older
 * version of an action uses.
 */
import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { StoredAsset } from "../../data/action-types.js";
import { type Db, rows, type SqlClient } from "../../data/database.js";
import { createTokenBucket } from "../../engine/token-bucket.js";
import { ActionError, createRateLimitError } from "../../errors.js";
import { RATE_WINDOW_MS, TYPE_DECLARATION_REQUESTS_PER_APP_AND_MINUTE } from "../../limits.js";
import { describeValue } from "../../rules/describe-value.js";
import { getStoredScriptPath, isStoredScript, type StoredScriptAsset } from "../../rules/packages.js";
import { PACKAGE_TYPES_MAX_CHARACTERS } from "../../rules/project-types.js";

/** An npm package whose code is part of a stored script. */
export interface ContainedPackage {
  name: string;
  version: string;
  licence: string | null;
}

/** Data about a stored script, without the script's text. */
export interface ScriptFacts {
  sha256: string;
  bytes: number;
  package: string | null;
  version: string | null;
  licence: string | null;
  global: string | null;
  /** Names of the global variables that the script uses; null if the script was not analyzed. */
  names: string[] | null;
  parts: ContainedPackage[];
}

export interface StoredScript {
  source: string;
  /** Original bytes of a script that is not valid UTF-8, because `source` then contains replacement characters. */
  raw?: Buffer;
  names: readonly string[] | null;
  global: string | null;
  /** True if the source contains `eval(`. The name alone does not count, because some libraries contain it only in a list of names. */
  callsEval: boolean;
}

const DIRECT_EVAL_PATTERN = /\beval\s*\(/;
const CACHED_SCRIPTS_MAX_BYTES = 64 * 1024 * 1024;
/** After the service has chosen a version for a dependency, it reuses this version for this many minutes without asking the registry. */
const CHOSEN_VERSION_REUSE_MINUTES = 10;
/** Days after which the service forgets the version that it chose for a dependency, unless a later save chose it again. */
const CHOSEN_VERSION_RETENTION_DAYS = 30;
/**
 * Milliseconds for which this process caches a chosen version. It is much shorter than UNUSED_SCRIPT_RETENTION_MINUTES, so that the
 * version's script still exists.
 */
const CHOSEN_VERSION_CACHE_MS = 60_000;
/** Minutes after which a stored script that no action and no version of an action uses is deleted. */
const UNUSED_SCRIPT_RETENTION_MINUTES = 60;

const SCRIPT_COLUMNS =
  "script.sha256, script.bytes, script.package, script.version, script.licence, script.global, script.names, script.parts";

const SELECT_CHOSEN_SCRIPT = `
  SELECT ${SCRIPT_COLUMNS}, choice.chosen_at > now() - interval '${CHOSEN_VERSION_REUSE_MINUTES} minutes' AS fresh
    FROM package_choice AS choice JOIN kept_script AS script ON script.sha256 = choice.sha256
   WHERE choice.registry = $1 AND choice.spec = $2`;

const INSERT_CHOSEN_VERSION = `
  INSERT INTO package_choice (registry, spec, sha256) SELECT $1, spec, $3 FROM unnest($2::text[]) AS spec
  ON CONFLICT (registry, spec) DO UPDATE SET sha256 = excluded.sha256, chosen_at = now()`;

const INSERT_SCRIPT = `
  INSERT INTO kept_script (sha256, source, package, version, licence, global, names, parts, declarations, declaration_bytes)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::bytea, coalesce(octet_length($9::bytea), 0))
  ON CONFLICT (sha256) DO UPDATE SET touched_at = now(),
    -- The same bytes may have come from a URL before: they were not analysed then.
    package = coalesce(kept_script.package, excluded.package), version = coalesce(kept_script.version, excluded.version),
    licence = coalesce(kept_script.licence, excluded.licence), global = coalesce(kept_script.global, excluded.global),
    names = coalesce(kept_script.names, excluded.names),
    declarations = coalesce(kept_script.declarations, excluded.declarations),
    declaration_bytes = greatest(kept_script.declaration_bytes, excluded.declaration_bytes),
    parts = CASE WHEN kept_script.package IS NULL THEN excluded.parts ELSE kept_script.parts END`;

const SELECT_USED_SCRIPTS = `
  SELECT sha256 FROM kept_script_use JOIN action ON action.id = action_id WHERE app_id = $1
  UNION
  SELECT sha256 FROM kept_script_use JOIN action_version ON action_version.id = action_version_id
    JOIN action ON action.id = action_version.action_id WHERE app_id = $1`;

/**
 * Selects the total bytes of the scripts that the app $1 uses, of the scripts $2, and of the script with the hash $3. If the script $3 is
 * not stored yet, it counts as $4 bytes.
 */
const SELECT_SCRIPT_BYTES = `
  SELECT (coalesce(sum(bytes + declaration_bytes) FILTER (WHERE sha256 <> $3), 0)
          + coalesce(sum(bytes + declaration_bytes) FILTER (WHERE sha256 = $3), $4::float8))::float8 AS bytes
    FROM kept_script WHERE sha256 = ANY (array_append($2::text[], $3::text)) OR sha256 IN (${SELECT_USED_SCRIPTS})`;

const SELECT_DECLARATIONS = `SELECT declarations FROM kept_script WHERE sha256 = $2 AND sha256 IN (${SELECT_USED_SCRIPTS})`;

/** Selects the declarations of the packages that drafts use: the smallest first, up to PACKAGE_TYPES_MAX_CHARACTERS in total. */
const SELECT_DRAFT_DECLARATIONS = `
  SELECT sha256, declarations FROM (
    SELECT sha256, declarations, sum(declaration_bytes) OVER (ORDER BY declaration_bytes, sha256) AS bytes FROM kept_script
     WHERE declarations IS NOT NULL AND sha256 IN (
       SELECT sha256 FROM kept_script_use JOIN action ON action.id = action_id WHERE app_id = $1 AND master_id IS NULL)) AS used
   WHERE bytes <= ${PACKAGE_TYPES_MAX_CHARACTERS}`;

const DELETE_UNUSED_CHOSEN_VERSIONS = `
  DELETE FROM package_choice WHERE (registry, spec) IN (
    SELECT registry, spec FROM package_choice WHERE chosen_at < now() - interval '${CHOSEN_VERSION_RETENTION_DAYS} days' LIMIT 10000)`;

const DELETE_UNUSED_SCRIPTS = `
  DELETE FROM kept_script WHERE sha256 IN (
    SELECT sha256 FROM kept_script AS script
     WHERE touched_at < now() - interval '${UNUSED_SCRIPT_RETENTION_MINUTES} minutes'
       AND NOT EXISTS (SELECT FROM kept_script_use AS use WHERE use.sha256 = script.sha256)
     LIMIT 500)
    AND touched_at < now() - interval '${UNUSED_SCRIPT_RETENTION_MINUTES} minutes'`;

export const computeSha256Hex = (content: Buffer): string => createHash("sha256").update(content).digest("hex");

const INTEGRITY_PATTERN = /^sha256-([A-Za-z0-9+/]{43}=)$/;

/** Returns the hash in an integrity value (`sha256-` and base64) in hexadecimal; null if the value is invalid. */
export function parseIntegritySha256(integrity: unknown): string | null {
  const hash = typeof integrity === "string" ? INTEGRITY_PATTERN.exec(integrity)?.[1] : undefined;
  return hash === undefined ? null : Buffer.from(hash, "base64").toString("hex");
}

const toIntegrityValue = (sha256: string): string => `sha256-${Buffer.from(sha256, "hex").toString("base64")}`;

/** Returns the asset of a dependency: the record in an action that refers to the stored script. */
export function toStoredScriptAsset(name: string, facts: ScriptFacts): StoredScriptAsset {
  const { sha256, bytes, version, licence, global, names } = facts;
  const integrity = toIntegrityValue(sha256);
  const optionalFields = {
    ...(version !== null && { version }),
    ...(licence !== null && { licence }),
    ...(global !== null && { global }),
    ...(names?.includes("eval()") && { usesEval: true }),
  };
  return { name, path: getStoredScriptPath(sha256), sha256, ...optionalFields, integrity, bytes };
}

export const listStoredScriptHashes = (assets: readonly StoredAsset[]): string[] => [
  ...new Set(assets.filter(isStoredScript).map(({ sha256 }) => sha256)),
];

export class StoredScripts {
  private readonly recentScripts = new LRUCache<string, StoredScript>({
    maxSize: CACHED_SCRIPTS_MAX_BYTES,
    sizeCalculation: ({ source, raw }) => source.length * 2 + (raw?.length ?? 0) + 1,
  });
  private readonly declarationBucket = createTokenBucket({
    limit: TYPE_DECLARATION_REQUESTS_PER_APP_AND_MINUTE,
    windowMs: RATE_WINDOW_MS,
  });
  private readonly recentChoices = new LRUCache<string, ScriptFacts>({ max: 1_000, ttl: CHOSEN_VERSION_CACHE_MS });

  constructor(private readonly db: Db) {}

  /**
   * Returns data about the script of the version that was chosen for a dependency (`spec`); null if no version is stored. If `fresh` is
   * true, the service can use this version without a request to the registry.
   */
  async findChosenScript(registry: string, spec: string): Promise<(ScriptFacts & { fresh: boolean }) | null> {
    const key = `${registry} ${spec}`;
    const recentChoice = this.recentChoices.get(key);
    if (recentChoice) return { ...recentChoice, fresh: true };
    const [chosenRow] = await rows<ScriptFacts & { fresh: boolean }>(this.db, SELECT_CHOSEN_SCRIPT, [registry, spec]);
    if (!chosenRow) return null;
    await rows(this.db, "UPDATE kept_script SET touched_at = now() WHERE sha256 = $1", [chosenRow.sha256]);
    if (chosenRow.fresh) this.recentChoices.set(key, chosenRow);
    return chosenRow;
  }

  /** Stores the script `facts` as the chosen version of the dependencies `specs`. */
  async recordChoice(registry: string, specs: readonly string[], facts: ScriptFacts): Promise<void> {
    await rows(this.db, INSERT_CHOSEN_VERSION, [registry, [...new Set(specs)], facts.sha256]);
    for (const spec of specs) this.recentChoices.set(`${registry} ${spec}`, facts);
  }

  /**
   * Stores a script. If the same content is already stored, adds only missing data about it.
   * @param declarations TypeScript declarations of the package, as a JSON array of strings
   */
  async store(
    source: Buffer,
    facts: Omit<ScriptFacts, "sha256" | "bytes">,
    declarations: Buffer | null = null,
  ): Promise<ScriptFacts> {
    const sha256 = computeSha256Hex(source);
    const { package: name, version, licence, global, names, parts } = facts;
    const values = [
      sha256,
      source,
      name,
      version,
      licence,
      global,
      names && JSON.stringify(names),
      JSON.stringify(parts),
      declarations,
    ];
    await rows(this.db, INSERT_SCRIPT, values);
    return { ...facts, sha256, bytes: source.length };
  }

  async findByHash(hashes: readonly string[]): Promise<ScriptFacts[]> {
    if (hashes.length === 0) return [];
    const sql = `UPDATE kept_script AS script SET touched_at = now() WHERE sha256 = ANY ($1) RETURNING ${SCRIPT_COLUMNS}`;
    return rows<ScriptFacts>(this.db, sql, [hashes]);
  }

  async read(sha256: string): Promise<StoredScript | null> {
    const recentScript = this.recentScripts.get(sha256);
    if (recentScript) return recentScript;
    const sql = "SELECT source, names, global FROM kept_script WHERE sha256 = $1";
    const [scriptRow] = await rows<Omit<StoredScript, "source" | "callsEval"> & { source: Buffer }>(this.db, sql, [
      sha256,
    ]);
    if (!scriptRow) return null;
    const raw = scriptRow.source;
    const source = String(raw);
    const callsEval = DIRECT_EVAL_PATTERN.test(source);
    const script = { ...scriptRow, source, callsEval, ...(!isUtf8(raw) && { raw }) };
    this.recentScripts.set(sha256, script);
    return script;
  }

  /**
   * Returns the TypeScript declarations of a script's package, as files that import each other as `./<index>`. The first file exports
   * `Value`, the type of the package's global variable. Null if the app does not use the script, or if there are no declarations.
   * @throws ActionError REQUEST_INVALID for an invalid integrity value, RATE_LIMIT_EXCEEDED
   */
  async readDeclarations(appId: number, integrity: unknown): Promise<string[] | null> {
    const sha256 = parseIntegritySha256(integrity);
    if (sha256 === null) {
      const expected =
        '"integrity" must be the integrity of a script in the ' +
        `action's assets: "sha256-" followed by a hash in base64`;
      throw new ActionError("REQUEST_INVALID", `${expected} (got ${describeValue(integrity)})`);
    }
    const waitSeconds = this.declarationBucket.takeTokens(String(appId), 1);
    if (waitSeconds > 0) {
      const limit = `this app can request declarations of packages at most ${TYPE_DECLARATION_REQUESTS_PER_APP_AND_MINUTE} times per minute`;
      throw createRateLimitError(`${limit}; try again in ${waitSeconds} s`, waitSeconds);
    }
    const [declarationRow] = await rows<{ declarations: Buffer | null }>(this.db, SELECT_DECLARATIONS, [appId, sha256]);
    return declarationRow?.declarations ? (JSON.parse(String(declarationRow.declarations)) as string[]) : null;
  }

  /** Returns the TypeScript declarations of the packages that the app's drafts use, by the integrity value of the package's script. */
  async readDraftDeclarations(appId: number): Promise<Map<string, string[]>> {
    const declarationRows = await rows<{ sha256: string; declarations: Buffer }>(this.db, SELECT_DRAFT_DECLARATIONS, [
      appId,
    ]);
    return new Map(
      declarationRows.map(({ sha256, declarations }) => [
        toIntegrityValue(sha256),
        JSON.parse(String(declarations)) as string[],
      ]),
    );
  }

  /**
   * Returns the total bytes of the scripts that the app uses, of the scripts in `addedHashes`, and of `script`. Each script counts once.
   * @param executor transaction of a save; without it, the scripts of actions that the save has written do not count
   */
  async sumScriptBytes(
    appId: number,
    addedHashes: readonly string[],
    script: { sha256: string; bytes: number },
    executor: SqlClient = this.db,
  ): Promise<number> {
    const [total] = await rows<{ bytes: number }>(executor, SELECT_SCRIPT_BYTES, [
      appId,
      addedHashes,
      script.sha256,
      script.bytes,
    ]);
    return total!.bytes;
  }

  async sweep(): Promise<void> {
    await rows(this.db, DELETE_UNUSED_CHOSEN_VERSIONS);
    await rows(this.db, DELETE_UNUSED_SCRIPTS);
  }
}
