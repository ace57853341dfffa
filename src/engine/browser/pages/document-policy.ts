/**
 * What no document of a run may ask the browser for, whatever frame it puts into the page: devices, people, and what is kept outside
 * the document. Names are those of the Permissions-Policy header; a test holds them to what the browser knows.
 */

/** Each would start a process, ask a person, read the machine, or outlive the run. */
export const FORBIDDEN_FEATURES: readonly string[] = (
  "accelerometer browsing-topics camera captured-surface-control clipboard-read clipboard-write compute-pressure " +
  "digital-credentials-create digital-credentials-get display-capture encrypted-media fullscreen gamepad geolocation " +
  "gyroscope hid identity-credentials-get idle-detection interest-cohort keyboard-map language-detector language-model " +
  "local-fonts magnetometer microphone midi on-device-speech-recognition otp-credentials payment picture-in-picture " +
  "private-state-token-issuance private-state-token-redemption publickey-credentials-create publickey-credentials-get " +
  "screen-wake-lock serial speaker-selection storage-access summarizer translator unload usb window-management " +
  "xr-spatial-tracking"
).split(" ");

/**
 * Names that every document and worker of a run is without: each holder with its members. They reach devices, people or programs beside the
 * page, start a process, or keep something that no end of a document ends.
 */
const ADVERTISING =
  "adAuctionComponents canLoadAdAuctionFencedFrame clearOriginJoinedAdInterestGroups createAuctionNonce deprecatedReplaceInURN " +
  "deprecatedRunAdAuctionEnforcesKAnonymity deprecatedURNToURL getInterestGroupAdAuctionData joinAdInterestGroup " +
  "leaveAdInterestGroup protectedAudience runAdAuction updateAdInterestGroups";
const DEVICES =
  "getGamepads getUserMedia gpu hid keyboard mediaDevices requestMIDIAccess serial usb webkitGetUserMedia xr";
const PEOPLE = "clipboard credentials login presentation virtualKeyboard windowControlsOverlay";
const SYSTEM =
  "clearAppBadge connection getInstalledRelatedApps managed registerProtocolHandler requestMediaKeySystemAccess setAppBadge " +
  "unregisterProtocolHandler wakeLock webkitPersistentStorage webkitTemporaryStorage";
const PICKERS =
  "EyeDropper documentPictureInPicture getScreenDetails launchQueue queryLocalFonts showDirectoryPicker showOpenFilePicker " +
  "showSaveFilePicker webkitRequestFileSystem webkitResolveLocalFileSystemURL";
const MODELS = "LanguageDetector LanguageModel SpeechRecognition Summarizer Translator webkitSpeechRecognition";
/** A page's place on a screen that is not there, which it keeps from document to document. */
const PLACE = "moveBy moveTo requestResize resizeBy resizeTo";
/** `ShadowRealm` is there for the host alone (realm-worker.ts). */
const OTHERS = "IdleDetector Notification PaymentRequest PresentationRequest ShadowRealm fence speechSynthesis";

export const FORBIDDEN_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  Navigator: `${ADVERTISING} ${DEVICES} ${PEOPLE} ${SYSTEM}`.split(" "),
  WorkerNavigator: "clipboard connection gpu hid managed mediaDevices serial usb".split(" "),
  // The document before, with its address and its state.
  Navigation: ["activation"],
  Window: `${PICKERS} ${MODELS} ${PLACE} ${OTHERS}`.split(" "),
  DedicatedWorkerGlobalScope:
    "IdleDetector Notification ShadowRealm webkitRequestFileSystem webkitRequestFileSystemSync"
      .split(" ")
      .concat("webkitResolveLocalFileSystemSyncURL webkitResolveLocalFileSystemURL".split(" ")),
};

export const POLICY_HEADER = {
  name: "Permissions-Policy",
  value: FORBIDDEN_FEATURES.map((feature) => `${feature}=()`).join(", "),
};
