/** Chooses the account under which PostgreSQL runs, because PostgreSQL refuses to run as root. */
import { chownSync, lchownSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { EmbeddedPostgresError } from "./failure.js";

export interface SystemAccount {
  uid: number;
  gid: number;
}

const PREFERRED_ACCOUNTS = ["postgres", "nobody"];

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

/** Returns the owner of the existing cluster, or else one of PREFERRED_ACCOUNTS. PostgreSQL requires an entry in /etc/passwd. */
function chooseAccount(rows: PasswdRow[], ownerUid: number | null): PasswdRow | undefined {
  const owner = rows.find((row) => row.uid === ownerUid && row.uid !== 0);
  return owner ?? PREFERRED_ACCOUNTS.flatMap((name) => rows.filter((row) => row.name === name))[0];
}

/**
 * Returns the account that runs PostgreSQL; null for the account of this process.
 * @throws EmbeddedPostgresError if this process runs as root, and /etc/passwd has no suitable account
 */
export function chooseClusterAccount(clusterDir: string): SystemAccount | null {
  if (process.getuid?.() !== 0) return null;
  const ownerUid = statSync(clusterDir, { throwIfNoEntry: false })?.uid ?? null;
  const account = chooseAccount(readPasswd(), ownerUid);
  if (!account) {
    throw new EmbeddedPostgresError(
      `PostgreSQL refuses to run as root and /etc/passwd contains neither the user ${PREFERRED_ACCOUNTS.join(" nor the user ")}: run the service as another user than root, or set DATABASE_URL.`,
    );
  }
  return { uid: account.uid, gid: account.gid };
}

/** Changes the owner of a folder and its content if necessary, because a restored backup may have any owner. */
export function changeFolderOwner(account: SystemAccount | null, folder: string): void {
  if (!account || statSync(folder).uid === account.uid) return;
  for (const entry of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    lchownSync(join(folder, entry), account.uid, account.gid);
  }
  // Changes the folder itself last, so that its owner shows that the whole content has the right owner.
  chownSync(folder, account.uid, account.gid);
}
