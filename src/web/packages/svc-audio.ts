/** Package `Svc.Audio`: plays, decodes and generates sound by Web Audio. It cannot record. */
import { defineSvcNamespace } from "./define.js";

/** Maximum time that a call waits until the browser allows sound. Browsers block sound until the user interacts with the page. */
const MAX_SOUND_WAIT_MS = 2_000;

/** Sample rate of decoded sound in hertz, the same on every machine. */
const DECODED_SAMPLE_RATE = 48_000;

type SoundSource = string | ArrayBuffer;

let sharedContext: AudioContext | null = null;

/** Returns the audio context that all calls of the page share, because browsers allow only a few contexts. */
function getAudioContext(): AudioContext {
  if (typeof AudioContext === "undefined") throw new Error("this browser does not support Web Audio");
  sharedContext ??= new AudioContext();
  return sharedContext;
}

async function loadBytes(source: SoundSource): Promise<ArrayBuffer> {
  if (typeof source !== "string") return source.slice(0);
  const response = await fetch(source);
  if (!response.ok)
    throw new Error(`the sound could not be loaded from ${source} (got HTTP status ${response.status})`);
  return response.arrayBuffer();
}

/** Decodes a sound without an audio device. Opening a device would take longer than decoding a short sound. */
async function decodeOffline(source: SoundSource): Promise<AudioBuffer> {
  return new OfflineAudioContext(1, 1, DECODED_SAMPLE_RATE).decodeAudioData(await loadBytes(source));
}

/** Returns the sound's duration in seconds, its sample rate in hertz, and for each channel the samples (numbers from -1 to 1). */
async function decodeSound(source: SoundSource) {
  const buffer = await decodeOffline(source);
  const channels = Array.from({ length: buffer.numberOfChannels }, (_, index) => buffer.getChannelData(index));
  return { duration: buffer.duration, sampleRate: buffer.sampleRate, channels };
}

/** Starts the audio output. @throws Error if the browser has blocked sound for MAX_SOUND_WAIT_MS */
async function resumeContext(output: AudioContext): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    const blockedError = new Error("the browser blocks sound until the user interacts with the page");
    timer = setTimeout(() => reject(blockedError), MAX_SOUND_WAIT_MS);
  });
  await Promise.race([output.resume(), timeout]).finally(() => clearTimeout(timer));
}

/** Starts a sound, and stops it after `seconds` if this number is passed. Resolves when the sound has ended. */
async function playUntilEnd(node: AudioScheduledSourceNode, volume: number, seconds?: number): Promise<void> {
  const output = getAudioContext();
  await resumeContext(output);
  const gain = new GainNode(output, { gain: volume });
  node.connect(gain).connect(output.destination);
  const ended = new Promise<void>((resolve) => {
    node.onended = () => resolve();
  });
  node.start();
  if (seconds !== undefined) node.stop(output.currentTime + seconds);
  await ended;
  gain.disconnect();
}

/** Plays a sound. Resolves when the sound has ended. @param source URL or content of a sound file */
async function playSound(source: SoundSource, { volume = 1 }: { volume?: number } = {}): Promise<void> {
  await playUntilEnd(new AudioBufferSourceNode(getAudioContext(), { buffer: await decodeOffline(source) }), volume);
}

/** Plays a tone of `frequency` hertz for `seconds`. Resolves when the tone has ended. */
async function playTone({ frequency = 440, seconds = 0.2, volume = 0.2, type = "sine" as OscillatorType } = {}) {
  await playUntilEnd(new OscillatorNode(getAudioContext(), { frequency, type }), volume, seconds);
}

defineSvcNamespace("Audio", { play: playSound, tone: playTone, decode: decodeSound });
