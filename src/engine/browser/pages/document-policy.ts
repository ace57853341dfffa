/** Features (named as in the Permissions-Policy header) and globals that runs must not use. A test compares them with the browser. */

/** Features that start a process, prompt a user, read data of the machine, or store data longer than the run. */
export const FORBIDDEN_BROWSER_FEATURES: readonly string[] = (
  "accelerometer browsing-topics camera captured-surface-control clipboard-read clipboard-write compute-pressure " +
  "digital-credentials-create digital-credentials-get display-capture encrypted-media fullscreen gamepad geolocation " +
  "gyroscope hid identity-credentials-get idle-detection interest-cohort keyboard-map language-detector language-model " +
  "local-fonts magnetometer microphone midi on-device-speech-recognition otp-credentials payment picture-in-picture " +
  "private-state-token-issuance private-state-token-redemption publickey-credentials-create publickey-credentials-get " +
  "screen-wake-lock serial speaker-selection storage-access summarizer translator unload usb window-management " +
  "xr-spatial-tracking"
).split(" ");

// Globals that use devices, a user or other programs, start a process, or store data longer than the document.
const ADVERTISING_APIS =
  "adAuctionComponents canLoadAdAuctionFencedFrame clearOriginJoinedAdInterestGroups createAuctionNonce deprecatedReplaceInURN " +
  "deprecatedRunAdAuctionEnforcesKAnonymity deprecatedURNToURL getInterestGroupAdAuctionData joinAdInterestGroup " +
  "leaveAdInterestGroup protectedAudience runAdAuction updateAdInterestGroups";
const DEVICE_APIS =
  "getGamepads getUserMedia gpu hid keyboard mediaDevices requestMIDIAccess serial usb webkitGetUserMedia xr";
const USER_DATA_APIS = "clipboard credentials login presentation virtualKeyboard windowControlsOverlay";
const SYSTEM_APIS =
  "clearAppBadge connection getInstalledRelatedApps managed registerProtocolHandler requestMediaKeySystemAccess setAppBadge " +
  "unregisterProtocolHandler wakeLock webkitPersistentStorage webkitTemporaryStorage";
const PICKER_APIS =
  "EyeDropper documentPictureInPicture getScreenDetails launchQueue queryLocalFonts showDirectoryPicker showOpenFilePicker " +
  "showSaveFilePicker webkitRequestFileSystem webkitResolveLocalFileSystemURL";
const MODEL_APIS = "LanguageDetector LanguageModel SpeechRecognition Summarizer Translator webkitSpeechRecognition";
/** The window would keep its position and size for the next document. */
const WINDOW_POSITION_APIS = "moveBy moveTo requestResize resizeBy resizeTo";
/** Includes `ShadowRealm`, because only the service may use it (realm-worker.ts). */
const OTHER_APIS = "IdleDetector Notification PaymentRequest PresentationRequest ShadowRealm fence speechSynthesis";

export const FORBIDDEN_GLOBAL_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  Navigator: `${ADVERTISING_APIS} ${DEVICE_APIS} ${USER_DATA_APIS} ${SYSTEM_APIS}`.split(" "),
  WorkerNavigator: "clipboard connection gpu hid managed mediaDevices serial usb".split(" "),
  // `activation` contains the URL and the state of the previous document.
  Navigation: ["activation"],
  Window: `${PICKER_APIS} ${MODEL_APIS} ${WINDOW_POSITION_APIS} ${OTHER_APIS}`.split(" "),
  DedicatedWorkerGlobalScope:
    "IdleDetector Notification ShadowRealm webkitRequestFileSystem webkitRequestFileSystemSync"
      .split(" ")
      .concat("webkitResolveLocalFileSystemSyncURL webkitResolveLocalFileSystemURL".split(" ")),
};

export const PERMISSIONS_POLICY_HEADER = {
  name: "Permissions-Policy",
  value: FORBIDDEN_BROWSER_FEATURES.map((feature) => `${feature}=()`).join(", "),
};
