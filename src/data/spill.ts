/**
 * SQL that makes PostgreSQL write temporary files to its disk. The check of free disk space uses it, because it fails
 * if the disk is full.
 */

/**
 * SQL statements for one transaction. The second statement sorts some megabytes. `work_mem` is too small for them, so
 * PostgreSQL sorts in temporary files.
 */
export const WRITE_TEMPORARY_FILES_SQL = [
  "SET LOCAL work_mem = '64kB'",
  `SELECT count(*) FROM (SELECT repeat(md5(n::text), 32) AS text FROM generate_series(1, 8000) AS n ORDER BY 1 OFFSET 1) AS sorted`,
];
