/** Uses Studio from the first sign-in to a published app, on a desktop and on a phone. */
import { testStory } from "../web/studio-story.js";

testStory(1280);
testStory(390);
