/** Under which account PostgreSQL runs: it refuses root. Knows nothing of servers. */
import { chownSync, lchownSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { EmbeddedPostgresError } from "./failure.js";

/** What spawn takes; null where the process itself is unprivileged. */
export interface SystemAccount {
  uid: number;
  gid: number;
}

const PREFERRED = ["postgres", "nobody"];

interface PasswdRow extends SystemAccount {
  name: string;
}

function readPasswd(): PasswdRow[] {
  const rows = readFileSync("/etc/passwd", "utf8").split("\n");
  return rows.map((row) => {
    const [name = "", , uid, gid] = row.split(":");
    return { name, uid: Number(uid), gid: Number(gid) };
  });
}

/** The owner of an existing cluster wins; a number that is not in passwd is no account to PostgreSQL. */
function choose(rows: PasswdRow[], ownerUid: number | null): PasswdRow | undefined {
  const owner = rows.find((row) => row.uid === ownerUid && row.uid !== 0);
  return owner ?? PREFERRED.flatMap((name) => rows.filter((row) => row.name === name))[0];
}

/** @throws EmbeddedPostgresError as root on a machine without an unprivileged account */
export function accountFor(clusterDir: string): SystemAccount | null {
  if (process.getuid?.() !== 0) return null;
  const ownerUid = statSync(clusterDir, { throwIfNoEntry: false })?.uid ?? null;
  const chosen = choose(readPasswd(), ownerUid);
  if (!chosen) {
    throw new EmbeddedPostgresError(
      `PostgreSQL refuses to run as root and /etc/passwd has neither ${PREFERRED.join(" nor ")}: run as another user, or set DATABASE_URL.`,
    );
  }
  return { uid: chosen.uid, gid: chosen.gid };
}

/** Hands a folder and all in it to the account, unless it is its own already: a restored backup may belong to anyone. */
export function giveTo(account: SystemAccount | null, folder: string): void {
  if (!account || statSync(folder).uid === account.uid) return;
  for (const entry of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    lchownSync(join(folder, entry), account.uid, account.gid);
  }
  // The folder itself comes last: its owner says that all is done.
  chownSync(folder, account.uid, account.gid);
}
