/** SQL that writes temporary files to PostgreSQL's disk. It fails if that disk is full, which a check of free space needs. */

/**
 * Statements of one transaction. The second statement sorts some megabytes. `work_mem` is too small for them, so
 * PostgreSQL sorts in temporary files.
 */
export const SPILL_SETTINGS = [
  "SET LOCAL work_mem = '64kB'",
  `SELECT count(*) FROM (SELECT repeat(md5(n::text), 32) AS text FROM generate_series(1, 8000) AS n ORDER BY 1 OFFSET 1) AS sorted`,
];
