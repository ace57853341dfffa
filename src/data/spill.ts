/** SQL that fails if PostgreSQL's disk is full. The check of free disk space executes it. */

/** Statements for one transaction. The second one sorts 8 MB with 64 kB of memory, so PostgreSQL writes temporary files. */
export const WRITE_TEMPORARY_FILES_SQL = [
  "SET LOCAL work_mem = '64kB'",
  `SELECT count(*) FROM (SELECT repeat(md5(n::text), 32) AS text FROM generate_series(1, 8000) AS n ORDER BY 1 OFFSET 1) AS sorted`,
];
