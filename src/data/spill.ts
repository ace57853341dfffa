/** Writes to PostgreSQL's disk without leaving data, so that it fails while the disk is full. */

/** Statements for one transaction. The last one sorts some megabytes with little memory, which PostgreSQL writes to temporary files. */
export const SPILL_SETTINGS = [
  "SET LOCAL work_mem = '64kB'",
  `SELECT count(*) FROM (SELECT repeat(md5(n::text), 32) AS text FROM generate_series(1, 8000) AS n ORDER BY 1 OFFSET 1) AS sorted`,
];
