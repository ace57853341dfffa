import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { expect } from "chai";
import { openSocketOwnerFinder } from "../../src/engine/egress-proxy/kernel-sockets.js";
import { findPeerUid, NO_SOCKET_OWNER, readSocketUidFromProc } from "../../src/engine/egress-proxy/socket-owner.js";

/** Program that connects as another user. It starts as root, because the other user may be unable to read Node's files. */
const CONNECT_SCRIPT = `
  const [host, port, uid] = process.argv.slice(1);
  const net = require("node:net");
  process.setuid(Number(uid));
  net.connect(Number(port), host).on("error", () => undefined);`;

/** An unused user id. */
const OTHER_UID = 64_033;

const ends = ({ remoteAddress, remotePort, localAddress, localPort }: Socket) =>
  [
    { address: remoteAddress!, port: remotePort! },
    { address: localAddress!, port: localPort! },
  ] as const;

describe("the owner of a connection", () => {
  let server: Server;
  let clients: ChildProcess[];

  beforeEach(() => {
    clients = [];
  });
  afterEach(async () => {
    for (const client of clients) client.kill();
    server.close();
  });

  async function connectionOf(uid: number, host: string): Promise<Socket> {
    server = createServer().listen(0, host);
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const connected = once(server, "connection");
    const args = [host, String(port), String(uid)];
    clients.push(spawn(process.execPath, ["-e", CONNECT_SCRIPT, ...args], { cwd: "/", env: {}, stdio: "inherit" }));
    const [socket] = (await connected) as [Socket];
    socket.on("error", () => undefined);
    return socket;
  }

  for (const host of ["127.0.0.1", "::1"]) {
    it(`is the same by the kernel and by its table, on ${host}`, async () => {
      const uid = process.getuid!() === 0 ? OTHER_UID : process.getuid!();
      const socket = await connectionOf(uid, host);
      const findOwner = await openSocketOwnerFinder();
      const [localEnd, remoteEnd] = ends(socket);
      expect(await findPeerUid(socket)).to.equal(uid);
      expect(await readSocketUidFromProc(localEnd, remoteEnd)).to.equal(uid);
      expect(findOwner?.(localEnd, remoteEnd)).to.equal(uid);
      expect(findOwner?.(remoteEnd, localEnd), "of the other end").to.equal(process.getuid!());
    });

    it(`is unknown after the connection has ended, on ${host}`, async () => {
      const socket = await connectionOf(process.getuid!(), host);
      const [{ address: remoteAddress, port: remotePort }, { address: localAddress, port: localPort }] = ends(socket);
      const gone = once(socket, "close");
      socket.resetAndDestroy();
      await gone;
      expect(await findPeerUid({ remoteAddress, remotePort, localAddress, localPort })).to.equal(NO_SOCKET_OWNER);
      expect(await findPeerUid(socket)).to.equal(NO_SOCKET_OWNER);
    });

    it(`is not the process that listens at the same port, on ${host}`, async () => {
      const socket = await connectionOf(process.getuid!(), host);
      const { localAddress, localPort } = socket;
      const listening = { address: localAddress!, port: localPort! };
      const findOwner = await openSocketOwnerFinder();
      expect(findOwner?.(listening, { address: localAddress!, port: 1 })).to.equal(null);
    });
  }
});

describe("the owner of a connection, without a free file descriptor to read it", () => {
  it("is an error, not an owner that the system does not report", () => {
    const script = `
      const { openSync } = await import("node:fs");
      const { readSocketUidFromProc } = await import(process.argv[1]);
      const end = { address: "127.0.0.1", port: 1 };
      try { for (;;) openSync("/dev/null") } catch {}
      process.stdout.write(await readSocketUidFromProc(end, end).then(String, ({ code }) => code));`;
    const limited = ["--nofile=100:100", process.execPath, "--input-type=module", "-e", script];
    const tested = new URL("../../src/engine/egress-proxy/socket-owner.js", import.meta.url).href;
    expect(execFileSync("prlimit", [...limited, tested], { encoding: "utf8" })).to.equal("EMFILE");
  });
});
