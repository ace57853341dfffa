/** Checks that no API lets a run reach a process of the browser that has no sandbox. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import type { Browsers } from "../../src/engine/browser/browsers.js";
import { resultOf, testBrowsers } from "../engine/browser/support.js";
import { chromePath } from "../harness/remote-chromium.js";
import { longTest, sampleOf } from "../harness/samples.js";

const GRAPHICS_CODE = `
  const kinds = ["webgl", "webgl2", "experimental-webgl"];
  const graphics = async (canvas) => {
    const found = kinds.filter((kind) => { try { return canvas().getContext(kind) !== null } catch { return false } });
    if (await navigator.gpu?.requestAdapter()) found.push("adapter");
    return found;
  };`;

/** Code that starts or uses another process in a browser without restrictions. The test waits at most 500 ms for each code. */
const PROCESS_STARTERS: Record<string, string> = {
  sound: `const context = new AudioContext(); const tone = context.createOscillator(); tone.connect(context.destination);
    tone.start(); await context.resume();`,
  "rendered sound": "await new OfflineAudioContext(1, 4410, 44100).startRendering();",
  film: "const film = document.createElement('video'); film.src = 'data:video/mp4;base64,AAAA'; await film.play();",
  canvas: `const canvas = new OffscreenCanvas(64, 64); canvas.getContext("2d").fillRect(0, 0, 9, 9);
    await createImageBitmap(await canvas.convertToBlob());`,
  "a canvas film": `const canvas = document.createElement("canvas"); canvas.getContext("2d").fillRect(0, 0, 3, 3);
    new MediaRecorder(canvas.captureStream(10)).start();`,
  "a film codec": `const encoder = new VideoEncoder({ output() {}, error() {} });
    encoder.configure({ codec: "vp8", width: 64, height: 64 });
    const canvas = new OffscreenCanvas(64, 64); canvas.getContext("2d");
    encoder.encode(new VideoFrame(canvas, { timestamp: 0 })); await encoder.flush();`,
  devices: "await navigator.mediaDevices.enumerateDevices();",
  "a microphone": "await navigator.mediaDevices.getUserMedia({ audio: true, video: true });",
  "a screen": "await navigator.mediaDevices.getDisplayMedia();",
  "a peer": `const peer = new RTCPeerConnection(); peer.createDataChannel("x");
    await peer.setLocalDescription(await peer.createOffer());`,
  speech: "speechSynthesis.speak(new SpeechSynthesisUtterance('x'));",
  keys: `await navigator.requestMediaKeySystemAccess("org.w3.clearkey",
    [{ initDataTypes: ["keyids"], videoCapabilities: [{ contentType: 'video/webm;codecs="vp8"' }] }]);`,
  "a document to read": `const frame = document.createElement("iframe");
    frame.src = URL.createObjectURL(new Blob(["%PDF-1.4"], { type: "application/pdf" })); document.body.append(frame);`,
  storage: "localStorage.a = 1; await caches.open('x'); await navigator.storage.getDirectory(); indexedDB.open('x');",
  pressure: "await new PressureObserver(() => {}).observe('cpu');",
  paper: "print();",
};

describe("the processes of a browser", () => {
  let browsers: Browsers;

  before(async () => {
    browsers = testBrowsers();
    await browsers.start();
  });
  after(() => browsers.stop());

  it("render no 3D for a run: neither in its document nor on an offscreen canvas", async () => {
    const page = `${GRAPHICS_CODE} const execute = () => graphics(() => document.createElement("canvas"))`;
    const offscreen = `${GRAPHICS_CODE} const execute = () => graphics(() => new OffscreenCanvas(1, 1))`;
    expect([await resultOf(browsers, page), await resultOf(browsers, offscreen)]).to.deep.equal([[], []]);
  });

  it("render no 3D for a worker of a run", async () => {
    const source = `${GRAPHICS_CODE} graphics(() => new OffscreenCanvas(1, 1)).then((found) => postMessage(found))`;
    const code = `const execute = () => new Promise((resolve) => {
      new Worker(URL.createObjectURL(new Blob([${JSON.stringify(source)}]))).onmessage = ({ data }) => resolve(data);
    })`;
    expect(await resultOf(browsers, code)).to.deep.equal([]);
  });

  it("still give a run a 2D canvas", async () => {
    const code = `const execute = async () => {
      const context = document.createElement("canvas").getContext("2d");
      context.fillStyle = "#102030"; context.fillRect(0, 0, 1, 1);
      return [...context.getImageData(0, 0, 1, 1).data];
    }`;
    expect(await resultOf(browsers, code)).to.deep.equal([16, 32, 48, 255]);
  });

  for (const [title, code] of sampleOf(Object.entries(PROCESS_STARTERS), 0, 3)) {
    it(`are sandboxed, or run no author's code, after a run has requested ${title}`, async () => {
      const source = `const execute = () => Promise.race([
        (async () => { try { ${code} } catch {} })(), new Promise((resolve) => setTimeout(resolve, 500))])`;
      await resultOf(browsers, source);
      const states = (await browsers.waitForProcessSandboxStates())!;
      expect(states.filter(({ contained }) => !contained)).to.deep.equal([]);
      expect(states.map(({ kind }) => kind)).to.include.members(["browser", "renderer", "gpu-process"]);
    });
  }

  longTest("make a browser unusable if one of them has an unknown kind and no sandbox", async () => {
    const folder = mkdtempSync(join(tmpdir(), "svc-odd-chrome-"));
    chmodSync(folder, 0o755);
    const path = join(folder, "chrome");
    writeFileSync(path, `#!/bin/sh\n(exec sh -c 'sleep 60; :' x --type=oddity) &\nexec ${chromePath()} "$@"\n`);
    chmodSync(path, 0o755);
    const odd = testBrowsers({ chromePath: path });
    try {
      const fault = await odd.start().catch((error: Error) => error.message);
      expect(fault).to.include("oddity");
    } finally {
      await odd.stop();
      rmSync(folder, { recursive: true });
    }
  });
});
